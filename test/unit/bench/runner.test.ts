import { describe, expect, it } from 'vitest';
import { runSuite } from '../../bench/runner.ts';
import { type BenchCase, benchCase, type Stage, type Suite } from '../../bench/suite.ts';

class Diary implements Stage {
  readonly lines: string[] = [];

  async close(): Promise<void> {
    this.lines.push('closed');
  }
}

interface CaseOptions {
  readonly fails?: 'prepare' | 'measure';
}

function caseOf(name: string, { fails }: CaseOptions = {}): BenchCase<Diary> {
  const step = async (stage: Diary, what: 'prepare' | 'measure'): Promise<void> => {
    stage.lines.push(`${what} ${name}`);
    await Promise.resolve();
    if (fails === what) throw new Error(`cannot ${what}`);
  };
  return benchCase({
    name,
    figures: { count: { text: 'count', unit: '', atMost: 1 } },
    prepare: (stage: Diary) => step(stage, 'prepare'),
    watched: () => [],
    async measure(stage) {
      await step(stage, 'measure');
      return { values: { count: 1 } };
    },
    async finish(stage) {
      stage.lines.push(`finish ${name}`);
    },
  });
}

async function run(steps: BenchCase<Diary>[][], options: { runs?: number; cases?: string[] } = {}) {
  const stages: Diary[] = [];
  const suite: Suite<Diary> = {
    name: 'suite',
    text: 'what diaries promise',
    defaults: { runs: 1, bases: 1 },
    steps,
    open() {
      const stage = new Diary();
      stages.push(stage);
      return stage;
    },
  };
  const { runs = 1, cases = [] } = options;
  const results = await runSuite(suite, { runs, bases: 1, cases, onProgress: () => {}, onStage: () => {} });
  return { results, diaries: stages.map(({ lines }) => lines) };
}

describe('a suite', () => {
  it('runs step by step, the cases of a step side by side, each run on a stage of its own', async () => {
    const { results, diaries } = await run([[caseOf('a')], [caseOf('b'), caseOf('c')]], { runs: 2 });
    const diary = [
      ...['prepare a', 'measure a', 'finish a'],
      ...['prepare b', 'prepare c', 'measure b', 'measure c', 'finish b', 'finish c'],
      'closed',
    ];
    expect(diaries).toEqual([diary, diary]);
    expect(results.map(({ name, figures }) => [name, figures[0]?.values])).toEqual([
      ['a', [1, 1]],
      ['b', [1, 1]],
      ['c', [1, 1]],
    ]);
  });

  it('runs only the cases asked for', async () => {
    const { results, diaries } = await run([[caseOf('a')], [caseOf('b'), caseOf('c')]], { cases: ['c'] });
    expect(diaries).toEqual([['prepare c', 'measure c', 'finish c', 'closed']]);
    expect(results.map(({ name }) => name)).toEqual(['c']);
  });

  it('ends a run with the step in which a case could not be prepared, and goes on with the next run', async () => {
    const steps = [[caseOf('a', { fails: 'prepare' }), caseOf('b')], [caseOf('c')]];
    const { results, diaries } = await run(steps, { runs: 2 });
    const diary = ['prepare a', 'prepare b', 'finish a', 'finish b', 'closed'];
    expect(diaries).toEqual([diary, diary]);
    expect(results.map(({ runs }) => runs.map(({ failure }) => failure))).toEqual([
      ['cannot prepare', 'cannot prepare'],
      ['cannot prepare', 'cannot prepare'],
      [],
    ]);
  });

  it('keeps what was measured beside a case that failed', async () => {
    const { results, diaries } = await run([[caseOf('a', { fails: 'measure' }), caseOf('b')], [caseOf('c')]]);
    expect(diaries[0]?.at(-1)).toBe('closed');
    expect(results.map(({ figures }) => figures[0]?.values)).toEqual([[], [1], []]);
    expect(results[0]?.runs[0]?.failure).toBe('cannot measure');
  });
});
