import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALLOWED_BYTES } from '../bench/soak/growth.ts';
import { type Soaked, startSoak, WATCHED_REPLICA } from '../bench/soak/soak.ts';
import type { SoakWorld } from '../bench/soak/soak-world.ts';
import { MORE_SOCKETS, verdictOf } from '../bench/soak/verdict.ts';

/** `npm run bench -- soak` in small. What goes wrong once in a night is not found here. */
const SIZE = {
  seed: 12,
  minutes: 2,
  bases: 20,
  replicas: 3,
  podsEachSecond: 3,
  sampleEverySeconds: 10,
  // Once within the acts.
  killEverySeconds: 40,
  flapsEachMinute: 2,
  actsShare: 0.5,
  bursts: 5,
  podsEachBurst: 225,
} as const;
const WARM_UP_SHARE = 0.5;
const TIMEOUT_MS = 900_000;

describe(`${SIZE.replicas} replicas that live on while ${SIZE.bases} bases and many Pods come and go`, () => {
  let world: SoakWorld | undefined;
  let soaked: Soaked;

  beforeAll(async () => {
    const onProgress = (line: string): void => console.log(line);
    const run = await startSoak({ ...SIZE, onProgress }, (started) => {
      world = started;
    });
    soaked = await run();
  }, TIMEOUT_MS);

  afterAll(() => world?.stop());

  const figures = () =>
    verdictOf(soaked, { minutes: SIZE.minutes, replica: WATCHED_REPLICA, warmUpShare: WARM_UP_SHARE });

  it('is what they lived through', () => {
    expect(soaked.problems).toEqual([]);
    expect(soaked.acts).toEqual({ kill: 1, die: 1, silence: 1, end: 1 });
    expect(soaked.samples.at(-1)?.world.churned).toBeGreaterThan(SIZE.bursts * SIZE.podsEachBurst);
  });

  it('keep every promise, and have every module as wanted in the end', () => {
    expect(soaked.reports.join('\n\n')).toBe('');
    expect(soaked.violations).toBe(0);
    expect(soaked.differences).toEqual([]);
  });

  it('grow in nothing that has a gauge, and in no socket', () => {
    expect(figures().details?.grown).toEqual([]);
    expect(figures().values.moreSockets).toBeLessThanOrEqual(MORE_SOCKETS);
  });

  it(`keep less than ${ALLOWED_BYTES} B of a Pod that came and went`, async ({ annotate }) => {
    const { bytes, noisyBytes, bytesError, leaks } = figures().values;
    await annotate(`${bytes ?? `in noise: ${noisyBytes}`} ± ${bytesError} B`);
    expect(leaks).toBe(0);
    // A machine so busy that nothing can be told is no fault; a heap that could not be read is one.
    expect(bytes ?? noisyBytes).not.toBeNaN();
  });
});
