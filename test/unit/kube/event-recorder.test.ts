import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControllerError } from '../../../src/errors.ts';
import type { Patch } from '../../../src/kube/client.ts';
import type { EventSubject } from '../../../src/kube/events/event-correlator.ts';
import { ApiEventRecorder } from '../../../src/kube/events/event-recorder.ts';
import type { EventObject } from '../../../src/kube/objects.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const pod = (name: string): EventSubject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  namespace: 'ns',
  name,
  uid: `uid-${name}`,
});

type Write = { readonly at: number; readonly name: string } & (
  | { readonly event: EventObject }
  | { readonly patch: Patch }
);

describe('ApiEventRecorder', () => {
  let clock: FakeClock;
  let writes: Write[];
  let failures: unknown[];
  let metrics: ReturnType<typeof createMetrics>;
  let traffic: { isCalm: boolean; onCalm(listener: () => void): void; calmDown(): void };
  let recorder: ApiEventRecorder;
  let abort: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    clock = new FakeClock();
    writes = [];
    failures = [];
    metrics = createMetrics();
    abort = new AbortController();
    let names = 0;
    const onCalm: (() => void)[] = [];
    traffic = {
      isCalm: true,
      onCalm: (listener) => onCalm.push(listener),
      calmDown: () => {
        traffic.isCalm = true;
        for (const listener of onCalm) listener();
      },
    };
    const write = async (one: Write): Promise<void> => {
      writes.push(one);
      const failure = failures.shift();
      if (failure) throw failure;
    };
    recorder = new ApiEventRecorder({
      client: {
        createEvent: (event) => write({ at: clock.now(), name: event.metadata.name, event }),
        patchEvent: (_namespace, name, patch) => write({ at: clock.now(), name, patch }),
      },
      traffic,
      clock,
      logger: silentLogger,
      metrics,
      reportingInstance: 'me',
      nameSuffix: () => `${names++}`.padStart(16, '0'),
    });
  });
  afterEach(async () => {
    abort.abort();
    await running;
  });

  const run = async (): Promise<void> => {
    running = recorder.run(abort.signal);
    await clock.advanceAsync(0);
  };
  const counts = async () =>
    Object.fromEntries((await metrics.events.get()).values.map(({ labels, value }) => [labels.result, value]));

  it('creates an event, and patches its count when it happens again', async () => {
    await run();
    recorder.event(pod('a'), 'Normal', 'Pulled', 'jar taken');
    await clock.advanceAsync(5000);
    recorder.event(pod('a'), 'Normal', 'Pulled', 'jar taken');
    await clock.advanceAsync(0);
    expect(writes).toMatchObject([
      {
        name: 'a.0000000000000000',
        event: { count: 1, reportingInstance: 'me', firstTimestamp: '2026-01-01T00:00:00Z' },
      },
      { name: 'a.0000000000000000', patch: { count: 2, message: 'jar taken', lastTimestamp: '2026-01-01T00:00:05Z' } },
    ]);
    expect(await counts()).toEqual({ written: 2, dropped: 0, aggregated: 0, failed: 0 });
  });

  it('makes names unique by 16 hexadecimal digits', async () => {
    const names: string[] = [];
    const writer = new ApiEventRecorder({
      client: {
        createEvent: async (event) => {
          names.push(event.metadata.name);
        },
        patchEvent: () => Promise.reject(new Error('not used')),
      },
      ...{ traffic, clock, logger: silentLogger, metrics: createMetrics(), reportingInstance: 'me' },
    });
    running = writer.run(abort.signal);
    for (const reason of ['Pulled', 'Failed']) writer.event(pod('a'), 'Warning', reason, 'm');
    await clock.advanceAsync(0);
    expect(names).toEqual(Array(2).fill(expect.stringMatching(/^a\.[\da-f]{16}$/)));
    expect(names[0]).not.toBe(names[1]);
  });

  it('writes no secret of a URL', async () => {
    await run();
    recorder.event(pod('a'), 'Warning', 'Failed', 'no https://user:s3cret@repo/x.jar?sig=s3cret');
    await clock.advanceAsync(0);
    expect(writes).toMatchObject([{ event: { message: 'no https://***@repo/x.jar?***' } }]);
  });

  it('writes what happened twice while it waited once', async () => {
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await run();
    expect(writes).toMatchObject([{ event: { count: 2 } }]);
  });

  it('creates an event anew when the API server has forgotten it', async () => {
    await run();
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(0);
    failures = [new ApiError('PATCH', { status: 404 })];
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(0);
    expect(writes.map(({ name }) => name)).toEqual(['a.0000000000000000', 'a.0000000000000000', 'a.0000000000000001']);
    expect(writes[2]).toMatchObject({ event: { count: 2 } });
  });

  it('creates it in a further try where the API server has forgotten it and the first one fails', async () => {
    await run();
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(0);
    failures = [new ApiError('PATCH', { status: 404 }), new ControllerError('Kube.ConnectionFailed', 'cut')];
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(1_000);
    expect(writes.slice(2)).toMatchObject([
      { name: 'a.0000000000000001', event: { count: 2 } },
      { name: 'a.0000000000000001', event: { count: 2 } },
    ]);
  });

  it('tries again when the connection fails, under the same name, and takes AlreadyExists for success', async () => {
    failures = [
      new ControllerError('Kube.ConnectionFailed', 'cut'),
      new ApiError('POST', { status: 409, reason: 'AlreadyExists' }),
    ];
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await run();
    await clock.advanceAsync(1000);
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(0);
    expect(writes).toMatchObject([
      { at: 0, name: 'a.0000000000000000', event: { count: 1 } },
      { at: 1000, name: 'a.0000000000000000', event: { count: 1 } },
      { at: 1000, name: 'a.0000000000000000', patch: { count: 2 } },
    ]);
    expect(await counts()).toMatchObject({ written: 2, failed: 0 });
  });

  it('gives an event up after two minutes, or at once when it is refused, and goes on', async () => {
    failures = Array.from({ length: 14 }, () => new ControllerError('Kube.ConnectionFailed', 'cut'));
    failures.push(new ApiError('POST', { status: 403 }));
    for (const name of ['a', 'b', 'c']) recorder.event(pod(name), 'Warning', 'Failed', 'm');
    await run();
    await clock.advanceAsync(120_000);
    expect(writes.map(({ at, name }) => `${name[0]} ${at / 1000}`)).toEqual([
      ...[0, 1, 3, 7, 15, 25, 35, 45, 55, 65, 75, 85, 95, 105].map((seconds) => `a ${seconds}`),
      'b 105',
      'c 105',
    ]);
    expect(await counts()).toMatchObject({ written: 1, failed: 2 });
  });

  it('keeps Warnings over an outage of a minute, each once, in their order', async () => {
    failures = Array.from({ length: 8 }, () => new ApiError('POST', { status: 503 }));
    await run();
    for (const name of ['a', 'b', 'c']) recorder.event(pod(name), 'Warning', 'Failed', 'm');
    await clock.advanceAsync(60_000);
    expect(writes.slice(8).map(({ name }) => name[0])).toEqual(['a', 'b', 'c']);
    expect(await counts()).toMatchObject({ written: 3, failed: 0, dropped: 0 });
  });

  it('writes 40 at once and then 20 a second, Warnings first', async () => {
    for (let i = 0; i < 60; i++) recorder.event(pod(`n${i}`), 'Normal', 'Pulled', 'm');
    recorder.event(pod('w'), 'Warning', 'Failed', 'm');
    await run();
    expect(writes).toHaveLength(40);
    expect(writes[0]?.name).toMatch(/^w\./);
    await clock.advanceAsync(999);
    expect(writes).toHaveLength(59);
    recorder.event(pod('late'), 'Warning', 'Failed', 'm');
    await clock.advanceAsync(1);
    expect(writes).toHaveLength(60);
    expect(writes[59]?.name).toMatch(/^late\./);
  });

  it('lets Normals wait while there is much else to do, and no Warnings', async () => {
    traffic.isCalm = false;
    recorder.event(pod('n'), 'Normal', 'Pulled', 'm');
    await run();
    expect(writes).toEqual([]);
    recorder.event(pod('w'), 'Warning', 'Failed', 'm');
    await clock.advanceAsync(5_000);
    expect(writes.map(({ name }) => name.split('.')[0])).toEqual(['w']);
    traffic.calmDown();
    await clock.advanceAsync(0);
    expect(writes.map(({ name }) => name.split('.')[0])).toEqual(['w', 'n']);
  });

  it('keeps the newest 100 Normals of a burst, and writes those that are alike once', async () => {
    await run();
    traffic.isCalm = false;
    for (let i = 0; i < 120; i++) recorder.event(pod(`n${i}`), 'Normal', 'Pulled', 'm');
    recorder.event(pod('n119'), 'Normal', 'Pulled', 'm');
    expect(await counts()).toMatchObject({ dropped: 21 });
    traffic.calmDown();
    await clock.advanceAsync(10_000);
    expect(writes.map(({ name }) => name.split('.')[0])).toEqual(Array.from({ length: 99 }, (_, i) => `n${i + 21}`));
    expect(writes.at(-1)).toMatchObject({ event: { count: 2 } });
    expect(await counts()).toMatchObject({ written: 99, dropped: 21 });
  });

  it('gives a Normal of a burst the time at which it happened', async () => {
    await run();
    traffic.isCalm = false;
    recorder.event(pod('n'), 'Normal', 'Pulled', 'm');
    recorder.event(pod('old'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(60_000);
    recorder.event(pod('old'), 'Normal', 'Pulled', 'm');
    traffic.calmDown();
    await clock.advanceAsync(0);
    expect(writes).toMatchObject([
      { event: { firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:00:00Z' } },
      { event: { firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:01:00Z' } },
    ]);
  });

  it('drops a Normal that has waited for the end of a burst for over two minutes', async () => {
    await run();
    traffic.isCalm = false;
    recorder.event(pod('n'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(120_001);
    traffic.calmDown();
    await clock.advanceAsync(0);
    expect(writes).toEqual([]);
    expect(await counts()).toMatchObject({ dropped: 1 });
  });

  it('drops Normals that are older than two minutes, and no Warnings', async () => {
    recorder.event(pod('n'), 'Normal', 'Pulled', 'm');
    recorder.event(pod('w'), 'Warning', 'Failed', 'm');
    clock.advance(1);
    recorder.event(pod('young'), 'Normal', 'Pulled', 'm');
    clock.advance(120_000);
    await run();
    expect(writes.map(({ name }) => name.split('.')[0])).toEqual(['w', 'young']);
    expect(writes[0]).toMatchObject({ event: { lastTimestamp: '2026-01-01T00:00:00Z' } });
    expect(await counts()).toMatchObject({ written: 2, dropped: 1 });
  });

  it('holds 1000, and drops the oldest Normals for new events, never a Warning for a Normal', async () => {
    for (let i = 0; i < 999; i++) recorder.event(pod(`w${i}`), 'Warning', 'Failed', 'm');
    recorder.event(pod('n1'), 'Normal', 'Pulled', 'm');
    recorder.event(pod('n1'), 'Normal', 'Pulled', 'm');
    expect(await counts()).toMatchObject({ dropped: 0 });
    recorder.event(pod('n2'), 'Normal', 'Pulled', 'm');
    recorder.event(pod('w999'), 'Warning', 'Failed', 'm');
    recorder.event(pod('n3'), 'Normal', 'Pulled', 'm');
    recorder.event(pod('w1000'), 'Warning', 'Failed', 'm');
    expect(await counts()).toMatchObject({ dropped: 4 });
    await run();
    await clock.advanceAsync(60_000);
    expect(writes.map(({ name }) => name.split('.')[0])).toEqual(Array.from({ length: 1000 }, (_, i) => `w${i + 1}`));
  });

  it('counts combined and held back events', async () => {
    await run();
    for (let i = 0; i < 30; i++) recorder.event(pod('a'), 'Warning', 'Failed', `try ${i}`);
    await clock.advanceAsync(10_000);
    expect(await counts()).toEqual({ written: 11, dropped: 5, aggregated: 20, failed: 0 });
    expect(writes.at(-1)).toMatchObject({ event: { count: 20, message: '(combined from similar events): try 29' } });
  });

  it('ends when it is told to, also while it waits', async () => {
    await run();
    abort.abort();
    await running;
    recorder.event(pod('a'), 'Normal', 'Pulled', 'm');
    await clock.advanceAsync(1000);
    expect(writes).toEqual([]);
  });
});
