import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createKubeLanes, type KubeLanes } from '../../../src/kube/transport/kube-lanes.ts';
import type { Metrics } from '../../../src/metrics.ts';
import { type FakeClock, settle } from '../../support/fake-clock.ts';
import { failureOf, GET, LaneRig, PATCH, POST } from './support/lane-rig.ts';
import { staticAccess, statusOf } from './support/rig.ts';
import { ScriptedServer } from './support/scripted-server.ts';
import { until } from './support/until.ts';

describe('HttpLane', () => {
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

  it('keeps the connection after a DELETE with a body', async () => {
    const ports = new Set<number | undefined>();
    for (let round = 0; round < 6; round++) {
      const answer = lanes.rest.request({ method: 'DELETE', path: '/api/v1/nodes/a', body: { gracePeriodSeconds: 0 } });
      const exchange = await server.next();
      ports.add(exchange.port);
      exchange.reply(200, { kind: 'Status' });
      await answer;
    }
    // Two connections are the lane's limit here.
    expect(ports.size).toBeLessThanOrEqual(2);
  });

  it('sends method, escaped query, JSON body and headers, and resolves with the answer', async () => {
    const answer = lanes.rest.request({
      ...PATCH,
      query: { a: 'b c&d', n: 1, none: undefined },
      contentType: 'application/merge-patch+json',
    });
    const exchange = await server.next();
    const { method, url, headers, body } = exchange;
    expect([method, url.pathname + url.search, body]).toEqual(['PATCH', '/api/v1/nodes/a?a=b%20c%26d&n=1', '{"a":1}']);
    expect(headers).toMatchObject({
      'content-type': 'application/merge-patch+json',
      accept: 'application/json',
      'user-agent': 'module-controller',
    });
    expect(headers.authorization).toBeUndefined();
    exchange.reply(200, { kind: 'Node' });
    expect(await answer).toEqual({ kind: 'Node' });
  });

  it('puts the path of the server in front', async () => {
    lanes = rig.connect(new URL('/k8s/clusters/c-1/', server.url));
    const answer = lanes.rest.request(GET);
    const exchange = await server.next();
    expect(exchange.url.pathname).toBe('/k8s/clusters/c-1/api/v1/nodes/a');
    exchange.reply(200, {});
    await answer;
  });

  it('keeps its connection, and shares none with another lane', async () => {
    const ports: (number | undefined)[] = [];
    for (const lane of [lanes.rest, lanes.rest, lanes.leases, lanes.leases]) {
      const answer = lane.request(GET);
      const exchange = await server.next();
      ports.push(exchange.port);
      exchange.reply(200, {});
      await answer;
      // The pool takes a connection back one turn after its answer.
      await settle();
    }
    expect(ports[0]).toBe(ports[1]);
    expect(ports[2]).toBe(ports[3]);
    expect(ports[0]).not.toBe(ports[2]);
  });

  it('lets a lease through while all other connections are busy', async () => {
    const blocked = [1, 2, 3].map(() => lanes.rest.request(GET));
    const held = [await server.next(), await server.next()];
    const lease = lanes.leases.request({ ...GET, path: '/lease' });
    const exchange = await server.next();
    expect(exchange.url.pathname).toBe('/lease');
    exchange.reply(200, {});
    await lease;
    for (const one of held) one.reply(200, {});
    (await server.next()).reply(200, {});
    await Promise.all(blocked);
  });

  it('makes an ApiError of an error status, with what is decided by', async () => {
    const failure = failureOf(lanes.rest.request(PATCH));
    const causes = [{ reason: 'FieldValueInvalid', field: 'metadata.uid', message: 'immutable' }];
    (await server.next()).reply(422, statusOf(422, 'Invalid', { causes }));
    expect(await failure).toMatchObject({
      code: 'Kube.RequestFailed',
      message: 'PATCH /api/v1/nodes/a: 422 Invalid said the server',
      status: 422,
      reason: 'Invalid',
      causes,
    });
  });

  it('makes an ApiError of an answer that is no Status', async () => {
    const failure = failureOf(lanes.rest.request(GET));
    (await server.next()).reply(502, '<html>Bad Gateway</html>');
    expect(await failure).toMatchObject({ code: 'Kube.RequestFailed', status: 502, reason: '' });
  });

  it.each([300, 304, 399])('takes %i for no answer', async (status) => {
    const failure = failureOf(lanes.rest.request(GET));
    (await server.next()).reply(status, '');
    expect(await failure).toMatchObject({ code: 'Kube.RequestFailed', status });
  });

  it('puts an answer together that comes in pieces', async () => {
    for (const pieces of [['{"kind":', '"Node"}'], ['{', '"kind"', ':"No', 'de"}'], ['{"kind":"Node"}']]) {
      const answer = lanes.rest.request(GET);
      const exchange = await server.next();
      exchange.send(...pieces);
      exchange.end();
      expect(await answer).toEqual({ kind: 'Node' });
    }
  });

  it('asks for metadata only, and reads nothing of it, where the answer is ignored', async () => {
    const answer = lanes.rest.request({ ...POST, ignoresAnswer: true });
    const exchange = await server.next();
    expect(exchange.headers.accept).toBe(
      'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json',
    );
    exchange.send('not JSON');
    exchange.end();
    expect(await answer).toBeUndefined();
  });

  it('does not ignore a refusal', async () => {
    const failure = failureOf(lanes.rest.request({ ...POST, ignoresAnswer: true }));
    (await server.next()).reply(409, { kind: 'Status', reason: 'Conflict', message: 'no' });
    expect(await failure).toMatchObject({ status: 409 });
  });

  it.each([
    ['rest', 64],
    ['leases', 32],
    ['members', 2],
  ] as const)('has in the lane for %s %i requests at a time', async (name, max) => {
    const byDefault = createKubeLanes({ access: staticAccess(server.url), clock, metrics });
    const answers = Array.from({ length: max + 1 }, () => byDefault[name].request(GET));
    const [first, ...others] = await Promise.all(Array.from({ length: max }, () => server.next()));
    await settle();
    expect(server.count).toBe(max);
    first?.reply(200, {});
    others.push(await server.next());
    for (const exchange of others) exchange.reply(200, {});
    await Promise.all(answers);
    await byDefault.close();
  });

  it('does not take half an answer for one', async () => {
    const failure = failureOf(lanes.rest.request(POST));
    const exchange = await server.next();
    exchange.send('{"kind":');
    exchange.end();
    expect(await failure).toMatchObject({ code: 'Kube.ConnectionFailed' });
  });

  it('holds on to no signal and no timer when it is done', async () => {
    const { signal } = new AbortController();
    const answer = lanes.rest.request({ ...GET, signal });
    const exchange = await server.next();
    expect([getEventListeners(signal, 'abort').length, clock.pending]).toEqual([1, 1]);
    exchange.reply(200, {});
    await answer;
    const failure = failureOf(lanes.rest.request({ ...GET, signal }));
    (await server.next()).reply(500, {});
    await failure;
    expect([getEventListeners(signal, 'abort').length, clock.pending]).toEqual([0, 0]);
  });

  it('fails with Kube.ConnectionFailed when nobody listens', async () => {
    const gone = await ScriptedServer.start();
    const { url } = gone;
    await gone.close();
    lanes = rig.connect(url);
    expect(await failureOf(lanes.rest.request(GET))).toMatchObject({
      code: 'Kube.ConnectionFailed',
      message: expect.stringMatching(/^GET \/api\/v1\/nodes\/a: .*ECONNREFUSED/),
    });
  });

  it.each([
    ['headers', false],
    ['the body', true],
  ])('fails after 10 s without %s and cuts the connection', async (_what, hasHeaders) => {
    const failure = failureOf(lanes.rest.request(GET));
    const exchange = await server.next();
    if (hasHeaders) exchange.send('{');
    clock.advance(9999);
    await settle();
    expect(exchange.isClosed).toBe(false);
    clock.advance(1);
    expect(await failure).toMatchObject({
      code: 'Kube.ConnectionFailed',
      message: 'GET /api/v1/nodes/a: no complete answer within 10000 ms',
    });
    await until(() => exchange.isClosed, 'the cut');
  });

  it('counts the wait for a free connection into the time limit', async () => {
    const held = [1, 2].map(() => failureOf(lanes.leases.request({ ...GET, timeoutMs: 60_000 })));
    await server.next();
    await server.next();
    const waiting = failureOf(lanes.leases.request({ ...GET, timeoutMs: 500 }));
    clock.advance(500);
    expect(await waiting).toMatchObject({ code: 'Kube.ConnectionFailed' });
    expect(server.count).toBe(2);
    await lanes.close();
    for (const failure of held) expect(await failure).toMatchObject({ code: 'Kube.ConnectionFailed' });
  });

  it('has fewer requests at a time while leases are late, and counts their time limit from their turn on', async () => {
    lanes = rig.connect(server.url, { restConnections: 4 });
    lanes.giveWayTo(() => 5_000);
    const answers = Array.from({ length: 5 }, () => lanes.rest.request({ ...GET, timeoutMs: 500 }));
    const exchanges = [await server.next(), await server.next(), await server.next(), await server.next()];
    const end = async (index: number): Promise<void> => {
      exchanges[index]?.reply(200, {});
      await answers[index];
    };
    const oneLease = async (): Promise<void> => {
      const lease = lanes.leases.request(PATCH);
      (await server.next()).reply(200, {});
      await lease;
    };
    await end(0);
    expect((await metrics.restLimit.get()).values).toMatchObject([{ value: 2 }]);
    await end(1);
    await oneLease();
    // The fifth would have come before the lease.
    expect(server.count).toBe(5);
    clock.advance(499);
    await end(2);
    const fifth = await server.next();
    expect(fifth.method).toBe('GET');
    await end(3);
    clock.advance(499);
    fifth.reply(200, {});
    await answers[4];
  });

  it('counts requests by method and status, and times them', async () => {
    clock.advance(60_000);
    const ok = lanes.rest.request(GET);
    const exchange = await server.next();
    clock.advance(250);
    exchange.reply(200, {});
    await ok;
    const failed = failureOf(lanes.rest.request(POST));
    (await server.next()).cut();
    await failed;
    expect((await metrics.restRequests.get()).values).toMatchObject([
      { labels: { method: 'GET', code: '200' }, value: 1 },
      { labels: { method: 'POST', code: '<error>' }, value: 1 },
    ]);
    const { values } = await metrics.restRequestSeconds.get();
    const seriesOf = (end: string): number | undefined =>
      values.find(({ metricName, labels }) => metricName?.endsWith(end) && labels.verb === 'GET')?.value;
    expect([seriesOf('_count'), seriesOf('_sum')]).toEqual([1, 0.25]);
  });
});
