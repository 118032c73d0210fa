import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { ApiClient, KubeObject } from '../../samples/control-plane/api-client.ts';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { messageOf } from '../../src/errors.ts';
import { envsOf } from '../../src/kinds/pod-env.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { placementOf, untoleratedTaintOf } from '../../src/kube/placement.ts';
import { eventually } from '../support/eventually.ts';
import { jarOf, modulePod } from '../support/manifests.ts';
import { find, findPod, isReady, isSchedulable, nodes } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import { podPath, type World } from '../support/world.ts';

const ENV = 'virtual-kubelet.koupleless.io/env';
const COMPONENT = 'virtual-kubelet.koupleless.io/component';
const OF_ENV = 'schedule.koupleless.io/node-env';
const OF_BASES = { key: 'schedule.koupleless.io/virtual-node', operator: 'Equal', value: 'True', effect: 'NoExecute' };
const PODS = `/api/v1/namespaces/${TENANT_NAMESPACE}/pods`;
const RANDOM_PODS = 300;
const AT_A_TIME = 20;
const LIMITED = 'this namespace may use the ENVs dev, not';

let world: World;
let prod: Fleet;
let tenant: ApiClient;

beforeAll(async () => {
  world = await startWorld();
  const platform = await Platform.install(world);
  await platform.installPolicies();
  for (const env of ['dev', 'prod']) await world.startController({ ENV: env, CLIENT_ID: `controller-${env}` });
  await world.startFleet({ env: 'dev', count: 1, identityPrefix: 'dev-' });
  prod = await world.startFleet({ env: 'prod', count: 1, identityPrefix: 'prod-' });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2));
  const port = await reservePort();
  await platform.installWebhook(port);
  await platform.start('admission', 'admission', { WEBHOOK_PORT: String(port) });
  tenant = await createTenant(world.controlPlane);
  for (const namespace of ['default', TENANT_NAMESPACE])
    await eventually(() => world.admin.get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`));
  // The API server asks the webhook when it trusts its certificate.
  await eventually(async () => {
    const { spec } = await world.admin.post('/api/v1/namespaces/default/pods?dryRun=All', shortPod('probe'));
    expect(spec.tolerations).toContainEqual(ofEnv('dev'));
  });
  await world.controlPlane.apply({
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ModuleTenancy',
    metadata: { name: 'limits', namespace: TENANT_NAMESPACE },
    spec: { envs: ['dev'] },
  } as KubeObject);
  await eventually(async () => expect(await create(shortPod('probe', [ofEnv('prod')]))).toContain(LIMITED));
});

afterAll(() => world?.stop());

function ofEnv(value: string) {
  return { key: OF_ENV, operator: 'Equal', value, effect: 'NoExecute' };
}

/** What a user has to write, and what besides. */
function shortPod(name: string, tolerations?: readonly object[], more: object = {}, labels: object = {}) {
  const containers = [{ name, image: jarOf(name, '1.0.0') }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { [COMPONENT]: 'module', ...labels } },
    spec: { containers, ...(tolerations && { tolerations }), ...more },
  };
}

function create(pod: object): Promise<string> {
  return tenant.post(PODS, pod).then(() => 'accepted', messageOf);
}

function patch(name: string, change: object): Promise<string> {
  return tenant.mergePatch(`${PODS}/${name}`, change).then(() => 'accepted', messageOf);
}

function podOf(name: string): Promise<PodObject | undefined> {
  return find<PodObject>(world.admin, podPath(name, TENANT_NAMESPACE));
}

/** Names ENVs in some places, in every way that the API server knows. */
const randomPod = fc
  .record({
    label: fc.constantFrom(undefined, undefined, 'dev', 'prod'),
    selected: fc.constantFrom(undefined, undefined, 'dev', 'prod'),
    tolerations: fc.option(
      fc.array(
        fc.record(
          {
            key: fc.constantFrom(OF_ENV, OF_ENV, OF_BASES.key),
            operator: fc.constantFrom('Equal', 'Equal', 'Equal', 'Exists'),
            value: fc.constantFrom('dev', 'dev', 'prod', 'True', ''),
            effect: fc.constantFrom('NoExecute', 'NoSchedule', ''),
          },
          { requiredKeys: [] },
        ),
        { maxLength: 3 },
      ),
      { nil: undefined },
    ),
  })
  .map(({ label, selected, tolerations }) =>
    shortPod('a', tolerations, selected ? envOf(selected) : {}, label ? { [ENV]: label } : {}),
  );

/** As the API server would store them. It refuses the others, or some are no Pods. */
async function acceptedOf(all: readonly object[]): Promise<PodObject[]> {
  const accepted: PodObject[] = [];
  for (let start = 0; start < all.length; start += AT_A_TIME) {
    const some = all.slice(start, start + AT_A_TIME);
    const answers = await Promise.allSettled(some.map((pod) => tenant.post(`${PODS}?dryRun=All`, pod)));
    accepted.push(...answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value as PodObject] : [])));
  }
  return accepted;
}

const envOf = (env: string) => ({ nodeSelector: { [ENV]: env } });

describe('a tenant whose modules run on bases of ENV dev', () => {
  it.each<[string, object]>([
    ['tolerates prod', shortPod('a', [ofEnv('prod')])],
    ['tolerates prod for a second', shortPod('a', [{ ...ofEnv('prod'), tolerationSeconds: 1 }])],
    ['tolerates prod too', shortPod('a', [OF_BASES, ofEnv('dev'), ofEnv('prod')])],
    ['tolerates every ENV', shortPod('a', [{ key: OF_ENV, operator: 'Exists' }])],
    ['tolerates everything', shortPod('a', [{ operator: 'Exists' }])],
    ['tolerates everything that ends Pods', shortPod('a', [{ operator: 'Exists', effect: 'NoExecute' }])],
    ['selects prod', shortPod('a', undefined, envOf('prod'))],
    ['has prod in its label', shortPod('a', undefined, {}, { [ENV]: 'prod' })],
  ])('has no Pod that %s', async (_, pod) => {
    expect(await create(pod)).toContain(LIMITED);
  });

  it.each(['deployments', 'daemonsets', 'statefulsets'])('has no such %s', async (plural) => {
    const { metadata, spec } = shortPod('a', [OF_BASES, { key: OF_ENV, operator: 'Exists' }]);
    const template = { metadata: { labels: { ...metadata.labels, app: 'a' } }, spec };
    const workload = { metadata: { name: 'a' }, spec: { selector: { matchLabels: { app: 'a' } }, template } };
    const path = `/apis/apps/v1/namespaces/${TENANT_NAMESPACE}/${plural}`;
    expect(await tenant.post(path, workload).then(() => 'accepted', messageOf)).toContain(LIMITED);
  });

  it('installs nothing on a base of prod that its Pod names, and Kubernetes ends that Pod', async () => {
    expect(await create(shortPod('bound', [OF_BASES, ofEnv('dev')], { nodeName: 'vnode.prod-1' }))).toBe('accepted');
    await eventually(async () => expect(await podOf('bound')).toBeUndefined());
    // What comes later on the same base has been decided after it.
    await world.controlPlane.apply(modulePod('owner', [{ name: 'owner' }], { env: 'prod', nodeName: 'vnode.prod-1' }));
    await eventually(async () => expect(isReady(await findPod(world.admin, 'owner'))).toBe(true));
    expect(prod.history.records({ command: 'installBiz' }).map(({ bizName }) => bizName)).toEqual(['owner']);
  });

  it('has no Pod that tolerates prod later, or is a Pod of modules later', async () => {
    const gated = { schedulingGates: [{ name: 'example.com/later' }] };
    expect(await create(shortPod('gated', undefined, gated))).toBe('accepted');
    const { spec } = (await podOf('gated')) as PodObject;
    for (const added of [ofEnv('prod'), { key: OF_ENV, operator: 'Exists' }, { operator: 'Exists' }])
      expect(await patch('gated', { spec: { tolerations: [...(spec.tolerations ?? []), added] } })).toContain(LIMITED);
    // Two policies refuse it, and either may be the one that answers: its toleration is for dev.
    expect(await patch('gated', { spec: envOf('prod') })).toMatch(
      /names ENVs that exclude each other|may use the ENVs dev/,
    );

    const other = modulePod('later', [{ name: 'later' }], { env: 'prod', nodeName: 'vnode.prod-1' });
    expect(await create({ ...other, metadata: { name: 'later' } })).toBe('accepted');
    expect(await patch('later', { metadata: { labels: { [COMPONENT]: 'module' } } })).toContain(LIMITED);
    for (const name of ['gated', 'later']) await tenant.delete(`${PODS}/${name}?gracePeriodSeconds=0`);
  });

  it('finds no Pod that the API server takes and a base of prod would take', async () => {
    const accepted = await acceptedOf(fc.sample(randomPod, RANDOM_PODS));
    expect(accepted.length).toBeGreaterThan(10);
    const taints = ['dev', 'prod'].map((value) => ({ key: OF_ENV, value, effect: 'NoExecute' }));
    for (const { spec } of accepted) {
      const [dev, ofProd] = taints.map((taint) =>
        untoleratedTaintOf(placementOf(spec), { name: 'a', labels: {}, taints: [taint] }, ['NoExecute']),
      );
      expect([spec.tolerations, dev, ofProd]).toEqual([spec.tolerations, undefined, taints[1]]);
    }
  });

  it('has the Pods that name dev, or no ENV', async () => {
    for (const [name, pod] of [
      ['short', shortPod('short')],
      ['labelled', shortPod('labelled', undefined, {}, { [ENV]: 'dev' })],
      ['whole', shortPod('whole', [OF_BASES, ofEnv('dev')], envOf('dev'))],
    ] as const) {
      expect([name, await create(pod)]).toEqual([name, 'accepted']);
      await eventually(async () => expect(isReady(await podOf(name))).toBe(true));
      expect((await podOf(name))?.spec.nodeName).toBe('vnode.dev-1');
    }
  });
});

describe('a Pod in a namespace without limits', () => {
  const inDefault = (pod: object): Promise<KubeObject> =>
    world.admin.post('/api/v1/namespaces/default/pods?dryRun=All', pod);

  it('that names an ENV gets no other', async () => {
    for (const pod of [
      shortPod('a', [ofEnv('prod')]),
      shortPod('a', undefined, envOf('prod')),
      shortPod('a', undefined, {}, { [ENV]: 'prod' }),
    ]) {
      const { spec } = await inDefault(pod);
      const own = spec.tolerations.filter(({ key }: { key: string }) => key.startsWith('schedule.koupleless.io/'));
      expect(own).toHaveLength(2);
      expect(own).toEqual(expect.arrayContaining([OF_BASES, ofEnv('prod')]));
    }
  });

  const inEnv = (...values: string[]) => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: ENV, operator: 'In', values }] }],
        },
      },
    },
  });

  const named = ({ metadata, ...rest }: ReturnType<typeof shortPod>, base: string) => ({
    ...rest,
    metadata: { ...metadata, annotations: { 'platform.koupleless.io/base-name': base } },
  });

  it.each<[object, RegExp]>([
    [
      shortPod('a', [ofEnv('prod')], {}, { [ENV]: 'dev' }),
      /dev in the label virtual-kubelet.koupleless.io\/env, prod in tolerations of schedule.koupleless.io\/node-env/,
    ],
    [shortPod('a', [ofEnv('prod')], envOf('dev')), /dev in the node selector, prod in tolerations/],
    [shortPod('a', undefined, envOf('dev'), { [ENV]: 'prod' }), /prod in the label .*, dev in the node selector/],
    [
      shortPod('a', [ofEnv('prod')], inEnv('dev', 'test')),
      /prod in tolerations of .*, dev or test in the node affinity/,
    ],
    // The webhook adds an affinity for it, which says nothing of ENVs.
    [
      named(shortPod('a', [ofEnv('prod')], envOf('dev')), 'base'),
      /dev in the node selector, prod in tolerations of schedule.koupleless.io\/node-env(?!.*affinity)/s,
    ],
  ])('is refused where it names ENVs that exclude each other (%#)', async (pod, message) => {
    const answer = await inDefault(pod).then(() => 'accepted', messageOf);
    expect(answer).toContain('spec: names ENVs that exclude each other');
    expect(answer).toMatch(message);
  });

  it('is refused for its ENVs exactly where the webhook finds none for it', async () => {
    const all = fc.sample(randomPod, RANDOM_PODS);
    const answers: string[] = [];
    for (let start = 0; start < all.length; start += AT_A_TIME) {
      const some = all.slice(start, start + AT_A_TIME);
      answers.push(...(await Promise.all(some.map((pod) => inDefault(pod).then(() => 'accepted', messageOf)))));
    }
    const refused = answers.map((answer) => answer.includes('exclude each other'));
    expect(refused.filter((is) => is).length).toBeGreaterThan(10);
    for (const [index, pod] of all.entries()) {
      if (answers[index] !== 'accepted' && !refused[index]) continue;
      expect([pod, refused[index]]).toEqual([pod, envsOf(pod as unknown as PodObject)?.length === 0]);
    }
  });

  it('may name several that leave one', async () => {
    for (const pod of [
      shortPod('a', [ofEnv('prod'), ofEnv('dev')], envOf('dev'), { [ENV]: 'dev' }),
      shortPod('a', [{ operator: 'Exists' }], envOf('dev')),
      shortPod('a', [ofEnv('prod')], inEnv('dev', 'prod')),
    ])
      expect(await inDefault(pod).then(() => 'accepted', messageOf)).toBe('accepted');
  });
});
