import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ApiClient } from '../../samples/control-plane/api-client.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { ANNOTATION } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { type ModuleOptions, modulePod, type PodOptions } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { eventsOf, find, findPod, isReady, waitingReason } from '../support/observe.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import { podPath } from '../support/world.ts';

const NODE = 'vnode.base-1';
const REPLACING = { [ANNOTATION.installStrategy]: 'uninstallThenInstall' };
/** The scheduler leaves it alone. */
const GATED = { spec: { schedulingGates: [{ name: 'tenant.example.com/later' }] } };
const PODS = `/api/v1/namespaces/${TENANT_NAMESPACE}/pods`;
const FORCE = { gracePeriodSeconds: 0, propagationPolicy: 'Background' };

let rig: ModuleRig;
let tenant: ApiClient;
/** The owner's Pod, and its version in the API when a test begins. */
let owner = 'victim-1';
let before: PodObject;
let mark: number;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 1 });
  tenant = await createTenant(rig.world.controlPlane);
  // Without it the API server admits no Pod.
  const account = `/api/v1/namespaces/${TENANT_NAMESPACE}/serviceaccounts/default`;
  await eventually(() => rig.admin.get(account));
  // Created first, so that it is the oldest; the scheduler leaves it alone until the tenant lets it go.
  await attack('early', [{ name: 'shop', version: '9.0.0' }], {
    annotations: REPLACING,
    ...GATED,
  });
  await rig.create(modulePod(owner, [{ name: 'shop', version: '1.0.0' }], { nodeName: NODE }));
  await rig.readyPod(owner);
});

afterAll(() => rig?.stop());

beforeEach(async () => {
  before = (await findPod(rig.admin, owner)) as PodObject;
  mark = rig.fleet.history.mark();
});

const pathOf = (name: string): string => podPath(name, TENANT_NAMESPACE);
const attacker = (name: string): Promise<PodObject | undefined> => find<PodObject>(rig.admin, pathOf(name));

async function attack(name: string, modules: readonly ModuleOptions[], options: PodOptions): Promise<void> {
  const pod = modulePod(name, modules, options);
  await tenant.post(PODS, {
    ...pod,
    metadata: { ...pod.metadata, namespace: TENANT_NAMESPACE },
  });
}

/** What the base was told since the test began, apart from the Pods of `plansMade`. */
function commands(): string[] {
  return ['installBiz', 'uninstallBiz', 'switchBiz']
    .flatMap((command) => rig.fleet.history.records({ command, since: mark }))
    .filter(({ bizName }) => bizName !== 'later')
    .map(({ command, bizName, bizVersion }) => `${command} ${bizName}:${bizVersion}`);
}

/** A Pod that comes later was installed and removed, so all that happened before it has had its plans. */
async function plansMade(): Promise<void> {
  await rig.create(modulePod('later', [{ name: 'later' }], { nodeName: NODE }));
  await rig.readyPod('later');
  await rig.remove('later');
}

/** Not one command, and not one write of the owner's Pod. */
async function expectUntouched(): Promise<void> {
  await plansMade();
  expect(commands()).toEqual([]);
  const pod = await findPod(rig.admin, owner);
  expect(pod?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  expect(isReady(pod)).toBe(true);
  expect(rig.modulesOf('base-1', 'shop')).toEqual(['shop:1.0.0 ACTIVATED']);
}

async function waitsForName(name: string): Promise<PodObject> {
  return eventually(async () => {
    const pod = await attacker(name);
    expect(waitingReason(pod)).toBe('ModuleNameTaken');
    return pod as PodObject;
  });
}

it('a tenant with the ClusterRole edit writes no status of its Pods, and does not choose their age', async () => {
  const forged = { creationTimestamp: '2020-01-01T00:00:00Z', namespace: TENANT_NAMESPACE };
  const pod = modulePod('forged', [{ name: 'other' }], GATED);
  const status = { phase: 'Running', containerStatuses: [{ name: 'other', containerID: 'koupleless://base-1/x' }] };
  const created = (await tenant.post(PODS, {
    ...pod,
    metadata: { ...pod.metadata, ...forged },
    status,
  })) as PodObject;
  expect(created.status?.containerStatuses).toBeUndefined();
  expect(created.metadata.creationTimestamp).not.toBe(forged.creationTimestamp);
  await expect(tenant.mergePatch(`${pathOf('forged')}/status`, { status })).rejects.toThrow(/forbidden/);
  await tenant.delete(pathOf('forged'), FORCE);
});

it.each<[string, readonly ModuleOptions[], PodOptions]>([
  ['same version', [{ name: 'shop', version: '1.0.0' }], {}],
  ['same version, other args', [{ name: 'shop', version: '1.0.0', args: ['--x'] }], {}],
  ['another version', [{ name: 'shop', version: '2.0.0' }], {}],
  ['another version that replaces', [{ name: 'shop', version: '2.0.0' }], { annotations: REPLACING }],
  [
    'another version with a long sleep',
    [{ name: 'shop', version: '2.0.0' }],
    {
      container: { lifecycle: { preStop: { sleep: { seconds: 3_000 } } } },
      spec: { terminationGracePeriodSeconds: 3_600 },
    },
  ],
])(
  "a tenant's Pod with a name of another namespace (%s) waits, and goes without a trace",
  async (_, modules, options) => {
    for (const deletion of [undefined, FORCE]) {
      await attack('attack', modules, { ...options, nodeName: NODE });
      const pod = await waitsForName('attack');
      expect(isReady(pod)).toBe(false);
      expect(JSON.stringify(pod.status)).not.toMatch(/default|victim-/);
      await tenant.delete(pathOf('attack'), deletion);
      // The sleep and the grace are an hour: whoever waited for them would fail here.
      await eventually(async () => expect(await attacker('attack')).toBeUndefined());
    }
    await expectUntouched();
    await eventually(async () => {
      const events = (await eventsOf(rig.admin, 'Pod', 'attack')).filter(({ reason }) => reason === 'ModuleNameTaken');
      expect(events.length).toBeGreaterThan(0);
      for (const { type, message } of events) {
        expect(type).toBe('Warning');
        expect(message).not.toMatch(/default|victim-/);
      }
    });
  },
);

it("a tenant's Pods that come and are forced away at once leave nothing behind", async () => {
  for (let round = 0; round < 10; round++) {
    await attack(`quick-${round}`, [{ name: 'shop', version: '1.0.0' }], { nodeName: NODE });
    await tenant.delete(pathOf(`quick-${round}`), FORCE);
  }
  await expectUntouched();
});

it('an older Pod of a tenant that is let go later waits too, also after a restart of the controller', async () => {
  const gates = { spec: { schedulingGates: null } };
  await tenant.mergePatch(pathOf('early'), gates);
  const early = await waitsForName('early');
  expect((early.metadata.creationTimestamp ?? '') <= (before.metadata.creationTimestamp ?? '')).toBe(true);
  await expectUntouched();
  await rig.controller.stop('SIGKILL');
  await rig.world.startController();
  await expectUntouched();
  expect(waitingReason(await attacker('early'))).toBe('ModuleNameTaken');
});

it('a rolling update of the owner keeps the name; the tenant has it when the last Pod of the owner has gone', async () => {
  await rig.create(
    modulePod('victim-2', [{ name: 'shop', version: '1.1.0' }], { nodeName: NODE, annotations: REPLACING }),
  );
  await rig.readyPod('victim-2');
  await rig.remove('victim-1');
  await plansMade();
  expect(commands().filter((line) => line.startsWith('installBiz'))).toEqual(['installBiz shop:1.1.0']);
  expect(rig.modulesOf('base-1', 'shop')).toEqual(['shop:1.1.0 ACTIVATED']);
  expect(isReady(await findPod(rig.admin, 'victim-2'))).toBe(true);
  expect(waitingReason(await attacker('early'))).toBe('ModuleNameTaken');

  owner = 'victim-2';
  mark = rig.fleet.history.mark();
  await rig.remove('victim-2');
  await eventually(async () => expect(isReady(await attacker('early'))).toBe(true));
  expect(commands()).toEqual(['installBiz shop:9.0.0', 'uninstallBiz shop:1.1.0']);
  expect(rig.modulesOf('base-1', 'shop')).toEqual(['shop:9.0.0 ACTIVATED']);
});
