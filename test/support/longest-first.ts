import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { type LateStart, recordedDurations, startOrder } from './durations.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Vitest's order of files: in each group of projects by {@link startOrder}, from `durations.json`. */
export function longestFirst(lateStarts: readonly LateStart[]) {
  const durations = recordedDurations();
  return class extends BaseSequencer {
    override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
      // Files of equal duration, and those without one, stay in the order of Vitest: those that failed last first.
      const planned = (await super.sort(specifications)).map((specification) => ({
        specification,
        project: specification.project.name,
        path: relative(ROOT, specification.moduleId),
        isIsolated: specification.project.config.isolate,
      }));
      const groups = Map.groupBy(planned, ({ specification }) => specification.project.config.sequence.groupOrder);
      return [...groups.values()].flatMap((group) =>
        startOrder(group, durations, lateStarts).map(({ specification }) => specification),
      );
    }
  };
}
