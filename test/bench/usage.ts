import { cpuSecondsOf, peakMibOf, resetPeak, residentMibOf } from '../support/cost.ts';

export interface Watched {
  readonly name: string;
  readonly pid: number;
}

export interface ProcessUsage {
  readonly name: string;
  readonly cpuSeconds: number;
  readonly residentMib: number;
  /** Absent: what the kernel tells may be of an earlier time. */
  readonly peakMib?: number;
}

/** CPU time and peak of memory since it was made, and memory at the end. */
export class UsageMeter {
  readonly #before: ReadonlyMap<number, { readonly cpuSeconds: number; readonly isPeakReset: boolean }>;

  constructor(watched: readonly Watched[]) {
    this.#before = new Map(
      watched.map(({ pid }) => [pid, { cpuSeconds: cpuSecondsOf(pid), isPeakReset: resetPeak(pid) }]),
    );
  }

  /** Of those that live now; one that was started meanwhile has its whole time. */
  read(watched: readonly Watched[]): ProcessUsage[] {
    return watched.map(({ name, pid }) => {
      const { cpuSeconds, isPeakReset } = this.#before.get(pid) ?? { cpuSeconds: 0, isPeakReset: true };
      return {
        name,
        cpuSeconds: rounded(cpuSecondsOf(pid) - cpuSeconds),
        residentMib: residentMibOf(pid),
        ...(isPeakReset ? { peakMib: peakMibOf(pid) } : {}),
      };
    });
  }
}

/** What is told of CPU time: hundredths, as the kernel counts them. */
export function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
