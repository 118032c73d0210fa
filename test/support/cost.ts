import { readFileSync } from 'node:fs';
import type { RequestCounts } from '../../samples/control-plane/request-counts.ts';
import { CONTROLLER_USER, type ControllerProcess, type World } from './world.ts';

/** CPU seconds that a process has used. */
export function cpuSecondsOf({ child }: ControllerProcess): number {
  const [, rest = ''] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ');
  const fields = rest.split(' ');
  // utime and stime, in hundredths of a second on every Linux of today.
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

export function residentMibOf({ child }: ControllerProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
}

/** What the controller asked of the API server while `act` ran, by the audit log, and the CPU seconds it took. */
export async function costOf(
  world: World,
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
