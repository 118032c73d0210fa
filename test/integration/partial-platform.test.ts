import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const execFileAsync = promisify(execFile);
const ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/module-platform';
const BINDINGS = [
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/module-platform',
  '/apis/rbac.authorization.k8s.io/v1/namespaces/koupleless-system/rolebindings/module-platform',
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/module-controller',
  '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/rolebindings/module-controller',
];
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/moduledeployments.platform.koupleless.io';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const MODULE_DEPLOYMENTS = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduledeployments';
const SERVICES = '/api/v1/namespaces/default/services';
const BASES = 2;

let world: World;
let platform: Platform;
let core: ControllerProcess;
let port: number;

async function readyz(process: ControllerProcess): Promise<string> {
  return (await fetch(`http://127.0.0.1:${await process.port('probes')}/readyz`)).text();
}

function start(name: string, controllers: string): Promise<ControllerProcess> {
  return platform.start(name, controllers, { WEBHOOK_PORT: String(port) });
}

const exported = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'exported', labels: { BCSGROUP: 'external' } },
  spec: { selector: { app: 'shop' }, ports: [{ name: 'tcp', port: 28_800, targetPort: 8080 }] },
};

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  core = await world.startController();
  await world.startFleet({ count: BASES });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  port = await reservePort();
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

describe('a controller whose CRD may not be installed', () => {
  it('waits, says which right it lacks, and goes on once it has it; the controller beside it works', async () => {
    const role = (await world.admin.get(ROLE)) as { rules: { resources: string[] }[] };
    const rules = role.rules.filter(
      ({ resources }: { resources: string[] }) => !resources.includes('customresourcedefinitions'),
    );
    await world.admin.mergePatch(ROLE, { rules });
    const process = await start('without-rights', 'peer,rollout');
    const workload = moduleWorkload('shop', [{ name: 'shop' }], { replicas: 1 });
    const labels = { 'virtual-kubelet.koupleless.io/strategy': 'peer' };
    await world.admin.post(DEPLOYMENTS, { ...workload, metadata: { ...workload.metadata, labels } });
    await eventually(async () => expect((await world.admin.get(`${DEPLOYMENTS}/shop`)).spec.replicas).toBe(BASES));
    const checks = await readyz(process);
    expect(checks).toMatch(/\[-\]CRD moduledeployments\.platform\.koupleless\.io failed: .*cannot get resource/);
    expect(process.lines.filter(({ level }) => level === 'fatal')).toEqual([]);
    await expect(world.admin.get(CRD)).rejects.toThrow();

    await world.admin.mergePatch(ROLE, { rules: role.rules });
    await eventually(async () => expect(await readyz(process)).toContain('readyz check passed'), 60_000);
    await world.admin.post(MODULE_DEPLOYMENTS, moduleDeployment({ name: 'cart', replicas: 1 }));
    await eventually(async () =>
      expect((await world.admin.get(`${MODULE_DEPLOYMENTS}/cart`)).status?.updatedReplicas).toBe(1),
    );
    await process.stop();
    await world.admin.delete(`${MODULE_DEPLOYMENTS}/cart`);
    await world.admin.delete(`${DEPLOYMENTS}/shop`);
  });
});

describe('the webhooks of controllers that are off', () => {
  it('let their kinds through, with a warning', async () => {
    await platform.installWebhook(port);
    const process = await start('peer-and-admission', 'peer,admission');
    await process.port('webhooks');
    const kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
    const warningsOf = async (object: object): Promise<string[]> => {
      const created = execFileAsync('kubectl', [`--kubeconfig=${kubeconfig}`, 'create', '-f', '-']);
      created.child.stdin?.end(JSON.stringify(object));
      return (await created).stderr.split('\n').filter((line) => line.startsWith('Warning:'));
    };
    // Until the API server has learnt of the CA.
    await eventually(async () => {
      await world.admin.post(`${MODULE_DEPLOYMENTS}?dryRun=All`, moduleDeployment({ replicas: 0 }));
    });
    expect(await warningsOf(moduleDeployment({ name: 'cart', replicas: 0 }))).toEqual([
      expect.stringContaining('moduledeployments were not checked'),
    ]);
    expect(await warningsOf(exported)).toEqual([expect.stringContaining('services were not checked')]);
    expect(
      await process.metric('module_controller_admission_reviews_total', 'result="off"', 'resource="services"'),
    ).toBe(1);
    await world.admin.delete(`${MODULE_DEPLOYMENTS}/cart`);
    await world.admin.delete(`${SERVICES}/exported`);
    await process.stop();
  });
});

/** An API server that has just started answers 403 to everybody for seconds, until it has read the roles. */
describe('accounts that have no rights for a while', () => {
  it('keep their processes, which go on by themselves', async () => {
    await platform.installWebhook(port);
    const subjects = await Promise.all(BINDINGS.map(async (path) => (await world.admin.get(path)).subjects));
    const bind = (isBound: boolean): Promise<unknown> =>
      Promise.all(
        BINDINGS.map((path, index) => world.admin.mergePatch(path, { subjects: isBound ? subjects[index] : [] })),
      );
    await bind(false);
    const process = await start('refused', 'peer,rollout,export,admission');
    const latecomer = await world.launchController({ CLIENT_ID: 'controller-1', ENV: 'other' });
    const all = [process, latecomer, core];
    for (const one of [process, latecomer]) await one.line(({ reason }) => /forbidden/.test(String(reason)));
    await world.admin.post('/api/v1/namespaces/default/pods', modulePod('late', [{ name: 'late' }]));
    // The watches of the core go on: its own writes are what fails.
    await core.line(({ reason }) => /forbidden/.test(String(reason)));
    expect(all.map(({ child }) => child.exitCode)).toEqual([null, null, null]);
    await bind(true);
    await eventually(async () => expect(await readyz(process)).toContain('readyz check passed'), 60_000);
    await eventually(async () => {
      expect((await pods(world.admin)).filter(isReady).map(({ metadata }) => metadata.name)).toEqual(['late']);
    }, 60_000);
    expect(all.map(({ child }) => child.exitCode)).toEqual([null, null, null]);
    expect(all.flatMap(({ lines }) => lines.filter(({ level }) => level === 'fatal'))).toEqual([]);
  });
});
