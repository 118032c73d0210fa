import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createKubeClient } from '../../../src/kube/kube-client.ts';
import type { EventObject } from '../../../src/kube/objects.ts';
import {
  isAlreadyExists,
  isConflict,
  isConnectionFailed,
  isNotFound,
  isRetriable,
} from '../../../src/kube/transport/api-error.ts';
import { createKubeLanes, type KubeLanes } from '../../../src/kube/transport/kube-lanes.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Loss, LossyApi, type LossyFault } from './support/lossy-api.ts';
import { staticAccess } from './support/rig.ts';
import { until } from './support/until.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const STORED = { node: '/api/v1/nodes/old', pod: '/api/v1/namespaces/ns/pods/old', lease: `${LEASES}/old` };

type Call = (client: KubeClient, version: string) => Promise<unknown>;

const CREATES: [string, Call][] = [
  ['createNode', (client) => client.createNode({ metadata: { name: 'new' } })],
  ['createLease', (client) => client.createLease({ metadata: { name: 'new' } })],
  ['createEvent', (client) => client.createEvent({ metadata: { name: 'new', namespace: 'ns' } } as EventObject)],
];
const PATCHES: [string, Call][] = [
  ['patchNodeStatus', (client) => client.patchNodeStatus('old', { status: {} })],
  ['patchPodStatus', (client) => client.patchPodStatus('ns', 'old', { status: {} })],
];
const PATCH_LEASE: [string, Call] = [
  'patchLease',
  (client, resourceVersion) => client.patchLease('old', { metadata: { resourceVersion } }),
];
const DELETES: [string, Call][] = [
  ['forceDeletePod', (client) => client.forceDeletePod('ns', 'old', 'u')],
  ['deleteNode', (client) => client.deleteNode('old', 'u')],
  ['deleteLease', (client) => client.deleteLease('old', 'u')],
];
const ALL = [...CREATES, ...PATCHES, PATCH_LEASE, ...DELETES];

/** Cut connections: nobody can tell from the error whether the request was carried out. */
const CUTS: Loss[] = ['reset', 'truncated'];
/** Sent again inside, since who refuses so has done nothing; we do not rely on it. */
const REFUSALS: Omit<LossyFault, 'isDone'>[] = [
  { loss: 429 },
  { loss: 429, retryAfter: '1' },
  { loss: 503, retryAfter: '1' },
];

function across<T>(calls: [string, Call][], faults: T[]): [string, T, Call][] {
  return calls.flatMap(([name, call]) => faults.map((fault): [string, T, Call] => [name, fault, call]));
}

describe('a call whose answer is lost', () => {
  let api: LossyApi;
  let lanes: KubeLanes;
  let client: KubeClient;
  let clock: FakeClock;
  let version: string;

  beforeEach(async () => {
    api = await LossyApi.start();
    clock = new FakeClock();
    const access = staticAccess(api.url, { first: 'Bearer old', next: 'Bearer new' });
    lanes = createKubeLanes({ access, clock, metrics: createMetrics(), random: () => 0 });
    client = createKubeClient(lanes);
    for (const path of Object.values(STORED)) version = api.put(path, 'u').metadata.resourceVersion ?? '';
  });
  afterEach(async () => {
    await lanes.close();
    await api.stop();
  });

  /** What the caller gets, waits between tries included. */
  async function outcome(call: Call): Promise<unknown> {
    let result: { readonly value: unknown } | undefined;
    const asked = call(client, version).then(
      () => 'ok',
      (error: unknown) => error,
    );
    void asked.then((value) => {
      result = { value };
    });
    // Only a wait between tries is as short as this.
    await until(() => {
      if ((clock.nextIn ?? Number.POSITIVE_INFINITY) <= 1_000) clock.advance(1_000);
      return result;
    }, 'an outcome');
    return result?.value;
  }

  it.each(across(CREATES, CUTS))(
    '%s, cut by %s: not sent again, since only the caller knows its own',
    async (_name, loss, call) => {
      api.faults.push({ loss, isDone: true });
      const error = await outcome(call);
      expect([isConnectionFailed(error), isRetriable(error)]).toEqual([true, true]);
      expect(api.done).toEqual(['POST 201']);
      // The caller's own next try tells what became of the first.
      expect(isAlreadyExists(await outcome(call))).toBe(true);
    },
  );

  it.each(across(CREATES, REFUSALS))(
    '%s, refused with %j though it was done: the caller gets AlreadyExists',
    async (_name, fault, call) => {
      api.faults.push({ ...fault, isDone: true });
      const error = await outcome(call);
      expect([isAlreadyExists(error), isConflict(error)]).toEqual([true, false]);
      expect(api.done).toEqual(['POST 201', 'POST 409']);
    },
  );

  it.each(across(PATCHES, CUTS))('%s, cut by %s: sent again, which changes nothing', async (_name, loss, call) => {
    api.faults.push({ loss, isDone: true });
    expect(await outcome(call)).toBe('ok');
    expect(api.done).toEqual(['PATCH 200', 'PATCH 200']);
  });

  it.each(CUTS)(
    'patchLease, cut by %s: sent again, and the caller gets a conflict with its own write',
    async (loss) => {
      api.faults.push({ loss, isDone: true });
      const error = await outcome(PATCH_LEASE[1]);
      expect([isConflict(error), isAlreadyExists(error)]).toEqual([true, false]);
      expect(api.done).toEqual(['PATCH 200', 'PATCH 409']);
    },
  );

  it.each(across(DELETES, CUTS))('%s, cut by %s: sent again, and the caller gets 404', async (_name, loss, call) => {
    api.faults.push({ loss, isDone: true });
    expect(isNotFound(await outcome(call))).toBe(true);
    expect(api.done).toEqual(['DELETE 200', 'DELETE 404']);
  });

  it.each(across(ALL, [500, 503] as const))(
    '%s, answered %d: handed to the caller at once, done or not',
    async (_name, loss, call) => {
      for (const isDone of [false, true]) {
        api.faults.push({ loss, isDone });
        const error = await outcome(call);
        expect(error).toMatchObject({ status: loss });
        expect(isRetriable(error)).toBe(true);
      }
      expect(api.done).toHaveLength(1);
    },
  );

  it.each(across([...PATCHES, PATCH_LEASE, ...DELETES], CUTS.slice(0, 1)))(
    '%s, cut by %s before it was done: done by the second try',
    async (_name, loss, call) => {
      api.faults.push({ loss, isDone: false });
      expect(await outcome(call)).toBe('ok');
      expect(api.done).toHaveLength(1);
    },
  );

  it.each(across(ALL, [401] as const))(
    '%s, answered %d with a rotated token: sent again with the new one',
    async (_name, loss, call) => {
      api.faults.push({ loss, isDone: false });
      expect(await outcome(call)).toBe('ok');
      expect(api.done).toHaveLength(1);
    },
  );
});
