import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { settableWallClock, setWallClock } from '../../support/wall-clock.ts';

const HOUR_MS = 3_600_000;
/** Answers every message with its clocks. */
const PROGRAM = `process.channel.ref(); process.on('message', (message) => {
  if (message === 'clocks') process.send({ now: Date.now(), date: new Date().getTime(), text: Date(), mono: performance.now() });
  if (message === 'end') process.disconnect();
})`;

it('the wall clock of a child process can be set while the process runs, and no other clock moves', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    env: { ...process.env, ...settableWallClock(-HOUR_MS) },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const clocks = async (): Promise<{ now: number; date: number; text: string; mono: number }> => {
    const answer = once(child, 'message');
    child.send('clocks');
    return (await answer)[0];
  };
  const expectShift = async (shiftMs: number): Promise<void> => {
    const before = Date.now();
    const { now, date, text } = await clocks();
    const after = Date.now();
    for (const time of [now, date, Date.parse(text) + 999]) expect(time).toBeGreaterThanOrEqual(before + shiftMs);
    for (const time of [now, date, Date.parse(text)]) expect(time).toBeLessThanOrEqual(after + shiftMs);
  };
  await expectShift(-HOUR_MS);
  const { mono } = await clocks();
  for (const shiftMs of [HOUR_MS, 0]) {
    await setWallClock(child, shiftMs);
    await expectShift(shiftMs);
  }
  const later = (await clocks()).mono - mono;
  expect(later).toBeGreaterThan(0);
  expect(later).toBeLessThan(HOUR_MS);
  child.send('end');
  expect(await once(child, 'exit')).toEqual([0, null]);
});
