import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ApiClient } from '../../samples/control-plane/api-client.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { find, isReady, waitingReason } from '../support/observe.ts';
import { createTenant, TENANT_NAMESPACE } from '../support/tenant.ts';
import { podPath } from '../support/world.ts';

const NODE = 'vnode.base-1';

let rig: ModuleRig;
let tenant: ApiClient;
let mark: number;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: 1, activateNewModule: true });
  tenant = await createTenant(rig.world.controlPlane);
  // Without it the API server admits no Pod.
  const account = `/api/v1/namespaces/${TENANT_NAMESPACE}/serviceaccounts/default`;
  await eventually(() => rig.admin.get(account));
});

afterAll(() => rig?.stop());

beforeEach(() => {
  mark = rig.fleet.history.mark();
});

/** A Pod of the tenant whose module is called `mine`, with a jar whose manifest says something else. */
async function attack(name: string, version: string): Promise<void> {
  const manifest = { bizName: 'orders', bizVersion: version };
  rig.fleet.setFault({ command: 'installBiz', bizName: 'mine', bizVersion: version, manifest });
  const pod = modulePod(name, [{ name: 'mine', version }], { nodeName: NODE });
  await tenant.post(`/api/v1/namespaces/${TENANT_NAMESPACE}/pods`, {
    ...pod,
    metadata: { ...pod.metadata, namespace: TENANT_NAMESPACE },
  });
}

async function endAttack(name: string): Promise<void> {
  const path = podPath(name, TENANT_NAMESPACE);
  await tenant.delete(path);
  await eventually(async () => expect(await find(rig.admin, path)).toBeUndefined());
}

function commands(): string[] {
  return ['installBiz', 'uninstallBiz']
    .flatMap((command) => rig.fleet.history.records({ command, since: mark }))
    .map(({ command, bizName, bizVersion }) => `${command} ${bizName}:${bizVersion}`);
}

const readyOf = async (name: string): Promise<boolean> => isReady(await find<PodObject>(rig.admin, podPath(name)));

it("a tenant's jar that installs a module of another name leaves nothing of it on the base", async () => {
  await attack('early', '2.0.0');
  await eventually(() => expect(commands()).toEqual(['installBiz mine:2.0.0', 'uninstallBiz orders:2.0.0']));
  await eventually(() => expect(rig.modulesOf('base-1')).toEqual([]));
  const pod = await find<PodObject>(rig.admin, podPath('early', TENANT_NAMESPACE));
  expect([isReady(pod), waitingReason(pod)]).toEqual([false, 'ErrImagePull']);
  await endAttack('early');
  // The owner comes, and gets its own.
  await rig.create(modulePod('owner-2', [{ name: 'orders', version: '2.0.0' }], { nodeName: NODE }));
  await rig.readyPod('owner-2');
  const own = { command: 'installBiz', bizName: 'orders', since: mark };
  expect(rig.fleet.history.records(own).map(({ outcome }) => outcome)).toEqual(['executed']);
  await rig.remove('owner-2');
});

it("a tenant's jar that is installed under the name of a version that the owner installs just then is replaced", async () => {
  // The owner's install comes while that of the tenant is in work, and finds the module there.
  rig.fleet.setFault({ command: 'installBiz', bizName: 'mine', installMs: 600, answerDelayMs: 600 });
  await attack('racing', '3.0.0');
  await eventually(() => expect(rig.modulesOf('base-1')).toEqual(['orders:3.0.0 RESOLVED']));
  await rig.create(modulePod('owner-3', [{ name: 'orders', version: '3.0.0' }], { nodeName: NODE }));
  const own = { command: 'installBiz', bizName: 'orders', since: mark };
  await rig.fleet.history.waitFor({ ...own, outcome: 'refused:REPEAT_BIZ' });
  await rig.fleet.history.waitFor({ ...own, outcome: 'executed' });
  expect(commands()).toContain('uninstallBiz orders:3.0.0');
  await endAttack('racing');
  await rig.readyPod('owner-3');
  expect(rig.modulesOf('base-1')).toEqual(['orders:3.0.0 ACTIVATED']);
  await rig.remove('owner-3');
});

it("a tenant's jar that installs a newer version of the owner's module serves for moments only", async () => {
  await rig.create(modulePod('owner-4', [{ name: 'orders', version: '4.0.0' }], { nodeName: NODE }));
  await rig.readyPod('owner-4');
  await attack('newer', '9.0.0');
  await eventually(() => expect(commands()).toContain('uninstallBiz orders:9.0.0'));
  await endAttack('newer');
  await eventually(async () => {
    expect(rig.modulesOf('base-1')).toEqual(['orders:4.0.0 ACTIVATED']);
    expect(await readyOf('owner-4')).toBe(true);
  });
});
