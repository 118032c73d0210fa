import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { RequestCounts } from '../../samples/control-plane/request-counts.ts';
import { CONTROLLER_USER, type ControllerProcess, type OwnWorld } from './world.ts';

/** A process, or its id. */
export type ProcessRef = number | { readonly child: { readonly pid?: number | undefined } };

/** CPU seconds that a process has used. */
export function cpuSecondsOf(process: ProcessRef): number {
  return statOf(pidOf(process)).cpuSeconds;
}

/** CPU seconds of the kernel's own threads: what the machine spends on its memory and its disks. */
export function kernelCpuSeconds(): number {
  return allPids()
    .map(kernelThreadSeconds)
    .reduce((sum, seconds) => sum + seconds, 0);
}

/** The processes that this one has started itself and that still run. */
export function childPidsOf(parent: number): number[] {
  return allPids()
    .filter((pid) => {
      try {
        return statOf(pid).parent === parent;
      } catch {
        return false; // it has ended meanwhile
      }
    })
    .map(Number);
}

function allPids(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
}

/** 0 for a process, and for what has ended meanwhile. */
function kernelThreadSeconds(pid: string): number {
  try {
    const { parent, cpuSeconds } = statOf(pid);
    return parent === KTHREADD ? cpuSeconds : 0;
  } catch {
    return 0;
  }
}

/** The parent of all kernel threads. */
const KTHREADD = 2;

function statOf(pid: number | string | undefined): { readonly parent: number; readonly cpuSeconds: number } {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const fields = rest.split(' ');
  // utime and stime, in hundredths of a second on every Linux of today.
  return { parent: Number(fields[1]), cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100 };
}

export function residentMibOf(process: ProcessRef): number {
  return statusMibOf(process, 'VmRSS');
}

/** The most it ever had, or since `resetPeak`. */
export function peakMibOf(process: ProcessRef): number {
  return statusMibOf(process, 'VmHWM');
}

/** The peak counts from now on; false: the kernel does not let us. */
export function resetPeak(process: ProcessRef): boolean {
  try {
    // proc(5): 5 sets VmHWM to what it has now.
    writeFileSync(`/proc/${pidOf(process)}/clear_refs`, '5');
    return true;
  } catch {
    return false;
  }
}

function statusMibOf(process: ProcessRef, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pidOf(process)}/status`, 'utf8');
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024);
}

function pidOf(process: ProcessRef): number | undefined {
  return typeof process === 'number' ? process : process.child.pid;
}

/** What the controller asked of the API server while `act` ran, by the audit log, and the CPU seconds it took. */
export async function costOf(
  world: OwnWorld,
  controller: ControllerProcess,
  act: () => Promise<unknown>,
): Promise<{ requests: RequestCounts; cpuSeconds: number }> {
  const since = await world.controlPlane.mark();
  const cpuBefore = cpuSecondsOf(controller);
  await act();
  const cpuSeconds = cpuSecondsOf(controller) - cpuBefore;
  return { requests: await world.controlPlane.requestCounts({ user: CONTROLLER_USER, since }), cpuSeconds };
}

/** `patch pods/status 200: 500, …` */
export function wordsOf(requests: RequestCounts): string {
  return requests
    .entries()
    .map(({ verb, resource, code, count }) => `${verb} ${resource} ${code}: ${count}`)
    .join(', ');
}
