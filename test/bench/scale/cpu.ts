import { COMPONENT_NAMES } from '../../../samples/control-plane/versions.ts';
import { cpuSecondsOf } from '../../support/cost.ts';
import type { ScaleWorld } from './scale-world.ts';

/** Seconds. `stage`: bases, observer and the bench itself, which nobody has beside a controller. */
export interface CpuSeconds {
  readonly subject: number;
  readonly controlPlane: number;
  readonly broker: number;
  readonly stage: number;
}

type Part = keyof CpuSeconds;
const PARTS: readonly Part[] = ['subject', 'controlPlane', 'broker', 'stage'];

/** CPU time that each part of a world has used since the meter was made. */
export class CpuMeter {
  readonly #world: ScaleWorld;
  readonly #before: ReadonlyMap<number, number>;

  constructor(world: ScaleWorld) {
    this.#world = world;
    const pids = Object.values(pidsOf(world)).flat();
    this.#before = new Map(pids.map((pid) => [pid, cpuSecondsOf(pid)]));
  }

  /** A process that was started meanwhile counts from its start, one that has ended does not count. */
  read(): CpuSeconds {
    const pids = pidsOf(this.#world);
    const usedBy = (pid: number): number => cpuSecondsOf(pid) - (this.#before.get(pid) ?? 0);
    const seconds = PARTS.map((part) => [part, pids[part].reduce((sum, pid) => sum + usedBy(pid), 0)]);
    return Object.fromEntries(seconds) as Record<Part, number>;
  }
}

function pidsOf({ world, subject, brokerPid, observer, fleets }: ScaleWorld): Record<Part, readonly number[]> {
  const components = COMPONENT_NAMES.map((name) => world.controlPlane.component(name).pid);
  return {
    subject: [subject.pid, ...(subject.helperPids ?? [])],
    controlPlane: components.filter((pid) => pid !== undefined),
    broker: [brokerPid],
    stage: [process.pid, observer.pid, ...fleets.map(({ pid }) => pid)],
  };
}

/** Of all that was used, percent. */
export function stageShareOf({ subject, controlPlane, broker, stage }: CpuSeconds): number {
  return (100 * stage) / (subject + controlPlane + broker + stage);
}
