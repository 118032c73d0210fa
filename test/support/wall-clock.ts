import type { ChildProcess } from 'node:child_process';
import { ended } from './ended.ts';

/**
 * Environment of a Node process whose wall clock `setWallClock` can set while the process runs. `shiftMs`: how far it
 * is off from the start.
 */
export function settableWallClock(shiftMs = 0): Record<string, string> {
  const preload = new URL('wall-clock-preload.ts', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${preload}`, TEST_WALL_CLOCK_SHIFT_MS: String(shiftMs) };
}

/**
 * Sets the wall clock of a child process to the true time plus `shiftMs`; 0 makes it right again. The child was started
 * with `settableWallClock` and with an IPC channel, as `ControllerProcess` has one. Resolves when the clock is set: a
 * process that is stopped by SIGSTOP does that when it goes on.
 */
export async function setWallClock(child: ChildProcess, shiftMs: number): Promise<void> {
  const isSet = new Promise<void>((resolve) => {
    const onMessage = (message: unknown): void => {
      if ((message as { wallClockShiftMs?: unknown }).wallClockShiftMs !== shiftMs) return;
      child.off('message', onMessage);
      resolve();
    };
    child.on('message', onMessage);
  });
  child.send({ wallClockShiftMs: shiftMs });
  await ended('setting the wall clock of a process', isSet);
}
