import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeLanes } from '../../../src/kube/transport/kube-lanes.ts';
import { JSON_PATCH } from '../../../src/kube/transport/rest-lane.ts';
import type { Metrics } from '../../../src/metrics.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { failureOf, GET, LaneRig, PATCH, POST } from './support/lane-rig.ts';
import { statusOf } from './support/rig.ts';
import type { ScriptedServer } from './support/scripted-server.ts';
import { until } from './support/until.ts';

describe('HttpLane on errors that pass', () => {
  let rig: LaneRig;
  let server: ScriptedServer;
  let clock: FakeClock;
  let lanes: KubeLanes;
  let metrics: Metrics;

  beforeEach(async () => {
    rig = await LaneRig.start();
    ({ server, clock, lanes, metrics } = rig);
  });
  afterEach(() => rig.stop());

  it.each([
    [429, { 'retry-after': '2' }, 2500],
    [429, {}, 1250],
    [503, { 'retry-after': '1' }, 1250],
  ])('sends again after %d with %j, a create too', async (status, headers, delayMs) => {
    clock.advance(60_000);
    const answer = lanes.rest.request(POST);
    (await server.next()).reply(status, statusOf(status, 'TooManyRequests'), headers as Record<string, string>);
    await until(() => clock.nextIn === delayMs, 'the wait');
    clock.advance(delayMs);
    const again = await server.next();
    expect(again.body).toBe('{"a":1}');
    again.reply(201, { kind: 'Node' });
    expect(await answer).toEqual({ kind: 'Node' });
    const { values } = await metrics.restRetries.get();
    expect(values).toMatchObject([{ labels: { verb: 'POST' }, value: 1 }]);
  });

  it('gives up after five tries', async () => {
    const failure = failureOf(lanes.rest.request(GET));
    for (let tries = 1; tries <= 5; tries++) {
      (await server.next()).reply(429, statusOf(429, 'TooManyRequests'), { 'retry-after': '1' });
      if (tries === 5) break;
      await until(() => clock.nextIn === 1250, 'the wait');
      clock.advance(1250);
    }
    expect(await failure).toMatchObject({ status: 429 });
    expect(server.count).toBe(5);
  });

  it('does not wait when Retry-After asks for more than 30 s', async () => {
    const failure = failureOf(lanes.rest.request(GET));
    (await server.next()).reply(429, statusOf(429, 'TooManyRequests'), { 'retry-after': '25' });
    expect(await failure).toMatchObject({ status: 429, retryAfterMs: 25_000 });
  });

  it.each([500, 503, 504])('hands %d without Retry-After to the caller', async (status) => {
    const failure = failureOf(lanes.rest.request(GET));
    (await server.next()).reply(status, statusOf(status, 'InternalError'));
    expect(await failure).toMatchObject({ status });
    expect(server.count).toBe(1);
  });

  it('ends the wait for a retry on abort and on close', async () => {
    const [abort, idle] = [new AbortController(), new AbortController()];
    const signals = [abort.signal, idle.signal];
    const [aborted, closed] = signals.map((signal) => failureOf(lanes.rest.request({ ...GET, signal })));
    for (const exchange of [await server.next(), await server.next()]) {
      exchange.reply(429, statusOf(429, 'TooManyRequests'));
    }
    await until(() => clock.pending === 2 && clock.nextIn === 1250, 'both waits');
    abort.abort();
    expect(await aborted).toMatchObject({ status: 429 });
    await lanes.close();
    expect(await closed).toMatchObject({ status: 429 });
    expect(clock.pending).toBe(0);
  });

  it('sends an idempotent request once more over a new connection when an idle one was cut', async () => {
    const warm = lanes.rest.request(GET);
    (await server.next()).reply(200, {});
    await warm;
    const answer = lanes.rest.request(PATCH);
    const cut = await server.next();
    cut.cut();
    const again = await server.next();
    expect(again.body).toBe('{"a":1}');
    expect(again.port).not.toBe(cut.port);
    again.reply(200, { ok: true });
    expect(await answer).toEqual({ ok: true });
  });

  it('gives up when the second connection is cut as well', async () => {
    const failure = failureOf(lanes.rest.request(PATCH));
    (await server.next()).cut();
    (await server.next()).cut();
    expect(await failure).toMatchObject({ code: 'Kube.ConnectionFailed' });
    expect(server.count).toBe(2);
  });

  it.each([
    ['a create', POST],
    ['a JSON patch', { ...PATCH, contentType: JSON_PATCH }],
  ])('leaves %s that was cut to its caller', async (_text, request) => {
    const failure = failureOf(lanes.rest.request(request));
    (await server.next()).cut();
    expect(await failure).toMatchObject({ code: 'Kube.ConnectionFailed' });
    expect(server.count).toBe(1);
  });

  it('sends once more with a newer credential after 401', async () => {
    lanes = rig.connect(server.url, { first: 'Bearer old', next: 'Bearer new' });
    const answer = lanes.rest.request(POST);
    const first = await server.next();
    expect(first.headers.authorization).toBe('Bearer old');
    first.reply(401, statusOf(401, 'Unauthorized'));
    const second = await server.next();
    expect(second.headers.authorization).toBe('Bearer new');
    second.reply(201, { kind: 'Node' });
    expect(await answer).toEqual({ kind: 'Node' });
  });

  it('does not send again after 401 when there is no newer credential', async () => {
    lanes = rig.connect(server.url, { first: 'Bearer old' });
    const failure = failureOf(lanes.rest.request(GET));
    (await server.next()).reply(401, statusOf(401, 'Unauthorized'));
    expect(await failure).toMatchObject({ status: 401 });
    expect(server.count).toBe(1);
  });
});
