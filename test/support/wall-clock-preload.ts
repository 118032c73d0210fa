/**
 * Loaded into a process by `--import`: its wall clock is off by what `setWallClock` (`wall-clock.ts`) last sent to it,
 * and at its start by TEST_WALL_CLOCK_SHIFT_MS. Only `Date` is shifted; timers, `performance.now()` and the uptime of
 * the machine go on as they do when an administrator or NTP sets the clock.
 */
let shiftMs = Number(process.env.TEST_WALL_CLOCK_SHIFT_MS ?? 0);

const SystemDate = Date;
const now = (): number => SystemDate.now() + shiftMs;

globalThis.Date = new Proxy(SystemDate, {
  construct: (target, values, newTarget) =>
    Reflect.construct(target, values.length === 0 ? [now()] : values, newTarget),
  apply: () => new SystemDate(now()).toString(),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
});

process.on('message', (message: { readonly wallClockShiftMs?: unknown }) => {
  if (typeof message?.wallClockShiftMs !== 'number') return;
  shiftMs = message.wallClockShiftMs;
  process.send?.({ wallClockShiftMs: shiftMs });
});
// A process that has nothing else to do ends.
process.channel?.unref();
