import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createKubeClient } from '../../../src/kube/kube-client.ts';
import { settle } from '../../support/fake-clock.ts';
import { failureOf, GET, LaneRig, PATCH } from './support/lane-rig.ts';

/** The rig's rest lane has so many connections. */
const CONNECTIONS = 2;
const NOT_PERMITTED = { code: 'Kube.NotPermitted' };

describe('a request with a permit', () => {
  let rig: LaneRig;
  let isPermitted: boolean;
  const permit = (): boolean => isPermitted;

  beforeEach(async () => {
    rig = await LaneRig.start();
    isPermitted = true;
  });
  afterEach(() => rig.stop());

  it('is sent while it is permitted, and its answer counts also when it is not any more', async () => {
    const answer = rig.lanes.rest.request({ ...PATCH, permit });
    const exchange = await rig.server.next();
    isPermitted = false;
    exchange.reply(200, { kind: 'Node' });
    expect(await answer).toEqual({ kind: 'Node' });
  });

  it('is not sent when it is not', async () => {
    isPermitted = false;
    expect(await failureOf(rig.lanes.rest.request({ ...PATCH, permit }))).toMatchObject(NOT_PERMITTED);
    expect(rig.server.count).toBe(0);
  });

  it('that waits for a connection is not sent when the permit has gone meanwhile, and others go on', async () => {
    const first = Array.from({ length: CONNECTIONS }, () => rig.lanes.rest.request(GET));
    const exchanges = [await rig.server.next(), await rig.server.next()];
    const ports = exchanges.map(({ port }) => port).sort();
    const waiting = failureOf(rig.lanes.rest.request({ ...PATCH, permit }));
    const behind = rig.lanes.rest.request({ ...PATCH, path: '/api/v1/nodes/b' });
    await settle();
    isPermitted = false;
    for (const exchange of exchanges) exchange.reply(200, {});
    await Promise.all(first);
    expect(await waiting).toMatchObject(NOT_PERMITTED);
    const next = await rig.server.next();
    expect(next.url.pathname).toBe('/api/v1/nodes/b');
    // What was held back costs no connection.
    expect(ports).toContain(next.port);
    next.reply(200, {});
    await behind;
    expect(rig.server.count).toBe(CONNECTIONS + 1);
  });

  it('is not tried again when the permit has gone meanwhile', async () => {
    const answer = failureOf(rig.lanes.rest.request({ ...PATCH, permit }));
    (await rig.server.next()).reply(429, {}, { 'retry-after': '1' });
    await settle();
    isPermitted = false;
    await rig.clock.advanceAsync(60_000);
    expect(await answer).toMatchObject(NOT_PERMITTED);
    expect(rig.server.count).toBe(1);
  });

  it('is what every write about a Node or a Pod can have', async () => {
    const client = createKubeClient(rig.lanes);
    isPermitted = false;
    const writes = [
      client.createNode({ metadata: { name: 'a' } }, permit),
      client.patchNode('a', {}, permit),
      client.patchNodeStatus('a', {}, permit),
      client.deleteNode('a', 'u1', permit),
      client.patchPodStatus('ns', 'p', {}, permit),
      client.forceDeletePod('ns', 'p', 'u1', permit),
    ];
    for (const write of writes) expect(await failureOf(write)).toMatchObject(NOT_PERMITTED);
    expect(rig.server.count).toBe(0);
  });
});

describe('a request that is tried once', () => {
  let rig: LaneRig;
  beforeEach(async () => {
    rig = await LaneRig.start();
  });
  afterEach(() => rig.stop());

  it.each([429, 503])('hands an answer %i to its caller, whatever that asks for', async (status) => {
    const answer = failureOf(rig.lanes.rest.request({ ...PATCH, isOnce: true }));
    (await rig.server.next()).reply(status, {}, { 'retry-after': '1' });
    expect(await answer).toMatchObject({ status });
    expect(rig.server.count).toBe(1);
  });

  it('is not sent again after a cut connection', async () => {
    const answer = failureOf(rig.lanes.rest.request({ ...PATCH, isOnce: true }));
    (await rig.server.next()).cut();
    expect(await answer).toMatchObject({ code: 'Kube.ConnectionFailed' });
    expect(rig.server.count).toBe(1);
  });
});
