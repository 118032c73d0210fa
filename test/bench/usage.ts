import { cpuSecondsOf, residentMibOf } from '../support/cost.ts';
import type { ControllerProcess } from '../support/world.ts';

export interface Watched {
  readonly name: string;
  readonly process: ControllerProcess;
}

export interface ProcessUsage {
  readonly name: string;
  readonly cpuSeconds: number;
  readonly residentMib: number;
}

/** CPU time since it was made, and memory at the end. */
export class UsageMeter {
  readonly #before: ReadonlyMap<ControllerProcess, number>;

  constructor(watched: readonly Watched[]) {
    this.#before = new Map(watched.map(({ process }) => [process, cpuSecondsOf(process)]));
  }

  /** Of those that live now; one that was started meanwhile has its whole time. */
  read(watched: readonly Watched[]): ProcessUsage[] {
    return watched.map(({ name, process }) => ({
      name,
      cpuSeconds: rounded(cpuSecondsOf(process) - (this.#before.get(process) ?? 0)),
      residentMib: residentMibOf(process),
    }));
  }
}

function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
