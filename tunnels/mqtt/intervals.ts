import type { IClientOptions } from 'mqtt';
import type { Clock, Timer } from '../../src/clock.ts';

type Intervals = Exclude<NonNullable<IClientOptions['timerVariant']>, string>;

/** The intervals that mqtt.js keeps alive with, on our clock. */
export function intervalsOf(clock: Clock): Intervals {
  /** Emptied by `clear`, which mqtt.js calls for each at the latest when its connection closes. */
  const running = new Map<number, Timer>();
  let lastId = 0;
  const set = (callback: () => void, intervalMs = 0): number => {
    const id = ++lastId;
    const arm = (): Timer =>
      clock.setTimer(() => {
        running.set(id, arm());
        callback();
      }, intervalMs);
    running.set(id, arm());
    return id;
  };
  const clear = (id: number): void => {
    running.get(id)?.cancel();
    running.delete(id);
  };
  return { set, clear } as Intervals;
}
