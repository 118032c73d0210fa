import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { KUBERNETES_VERSION } from '../../samples/control-plane/versions.ts';
import { withoutNulls } from '../../src/kinds/pod-form.ts';
import { POD_TYPES } from '../../src/kinds/pod-types.ts';
import { SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import { MODULE_DEPLOYMENT_CRD } from '../../src/platform/rollout/module-deployment.ts';
import { podTypesOf } from '../manifests/pod-types.ts';
import { eventually } from '../support/eventually.ts';
import { find } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment, moduleDeploymentPath } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import { BY_BOTH, BY_MODULE_DEPLOYMENTS, type Change, RICH } from '../support/templates.ts';
import type { World } from '../support/world.ts';

const CRD = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${MODULE_DEPLOYMENT_CRD.metadata.name}`;
const COLLECTION = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduledeployments';
const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions';

let world: World;
let platform: Platform;
let kubeconfig: string;

/** What kubectl prints, and whether it succeeds. */
async function kubectl(args: readonly string[], manifest?: object): Promise<{ isDone: boolean; output: string }> {
  const process = spawn('kubectl', args, { env: { ...globalThis.process.env, KUBECONFIG: kubeconfig } });
  const ended = new Promise<number | null>((resolve) => process.once('exit', resolve));
  process.stdin.end(manifest === undefined ? '' : JSON.stringify(manifest));
  const [out, err, code] = await Promise.all([text(process.stdout), text(process.stderr), ended]);
  return { isDone: code === 0, output: `${out}${err}` };
}

function manifestOf(change: Change = () => {}, version = '1.0.0') {
  const manifest = structuredClone(moduleDeployment({ version, replicas: 0 }));
  change(manifest.spec.template, manifest.spec);
  return manifest;
}

/** The same as a Deployment, with the names that one has. */
function asDeployment({ metadata, spec }: ReturnType<typeof manifestOf>) {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec };
}

/** As the first versions of this program installed it: fields without any rule. */
function earlierCrd(): object {
  const { metadata, spec } = MODULE_DEPLOYMENT_CRD;
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } };
  const versions = spec.versions.map((version) => ({ ...version, schema, subresources: { status: {} } }));
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { ...metadata, annotations: { [SCHEMA_ANNOTATION]: '0' } },
    spec: { ...spec, versions },
  };
}

const SAMPLE = fileURLToPath(new URL('../../samples/module-rollout.yaml', import.meta.url));
const STORED_BEFORE = 'stored-before';
const APPLIED_BEFORE = 'applied-before';

function serverSide(manifest: object) {
  return kubectl(['apply', '--server-side', '-f', '-'], manifest);
}

function appliedBefore(variable: string) {
  return moduleDeployment({ name: APPLIED_BEFORE, replicas: 0, env: { [variable]: 'x' } });
}

beforeAll(async () => {
  world = await startWorld();
  kubeconfig = await world.controlPlane.kubeconfig({ user: 'admin' });
  platform = await Platform.install(world);
  await world.admin.applyObject(CRD, earlierCrd() as never, 'module-controller');
  const old = structuredClone(moduleDeployment({ name: STORED_BEFORE, replicas: 0 }));
  Object.assign(old.spec.template.spec, { tolerations: 'abc', tolerationss: [] });
  await eventually(async () => void (await world.admin.post(COLLECTION, old)));
  expect(await serverSide(appliedBefore('OLD'))).toMatchObject({ isDone: true });
  const port = await reservePort();
  await platform.installWebhook(port);
  const controller = await platform.start('platform', 'rollout,admission', { WEBHOOK_PORT: String(port) });
  await controller.line(({ msg }) => msg === 'CRD installed');
  await controller.port('webhooks');
  await eventually(async () => {
    await world.admin.post(`${COLLECTION}?dryRun=All`, manifestOf() as never);
    // Both the schema and the webhook are in force.
    const [byWebhook, bySchema] = await Promise.all([
      kubectl(
        ['apply', '--dry-run=server', '-f', '-'],
        manifestOf(({ spec }) => spec.tolerations.push({})),
      ),
      kubectl(
        ['apply', '--dry-run=server', '-f', '-'],
        manifestOf(({ spec }) => Object.assign(spec, { typo: 1 })),
      ),
    ]);
    expect([byWebhook.isDone, bySchema.isDone]).toEqual([false, false]);
  });
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

afterEach(async () => {
  await world.admin.delete(moduleDeploymentPath()).catch(() => {});
  await eventually(async () => expect(await find(world.admin, moduleDeploymentPath())).toBeUndefined());
});

const apply = (manifest: object) => kubectl(['apply', '--dry-run=server', '-f', '-'], manifest);

describe('kubectl apply refuses a ModuleDeployment', () => {
  it.each(BY_BOTH)('with %s, as a Deployment', async (_what, change, message) => {
    const [asked, deployment] = [manifestOf(change), asDeployment(manifestOf(change))];
    const [answer, other] = await Promise.all([apply(asked), apply(deployment)]);
    expect(answer).toEqual({ isDone: false, output: expect.stringContaining(message) });
    expect(other).toMatchObject({ isDone: false });
  });

  it.each(BY_MODULE_DEPLOYMENTS)('with %s', async (_what, change, message) => {
    expect(await apply(manifestOf(change))).toEqual({ isDone: false, output: expect.stringContaining(message) });
  });
});

describe('kubectl apply accepts a ModuleDeployment', () => {
  it('with all that a Deployment accepts, without a word', async () => {
    for (const manifest of [manifestOf(RICH), asDeployment(manifestOf(RICH))])
      expect(await apply(manifest)).toEqual({ isDone: true, output: expect.not.stringContaining('Warning') });
  });

  it('as the sample has it', async () => {
    const answer = await kubectl(['apply', '--dry-run=server', '-f', SAMPLE]);
    expect(answer).toEqual({ isDone: true, output: expect.not.stringContaining('Warning') });
  });

  it('and stores the template as it is, without defaults', async () => {
    const manifest = manifestOf(RICH);
    // kubectl leaves out what is null.
    await world.admin.post(`${COLLECTION}?fieldValidation=Strict`, manifest);
    const { spec } = await world.admin.get(moduleDeploymentPath());
    expect(spec.template).toEqual(withoutNulls(manifest.spec.template));
  });

  it('with two managers of one container, each of its own variables', async () => {
    const applied = (manager: string, name: string) => {
      const { metadata, apiVersion, kind } = manifestOf();
      const containers = [
        { name: 'shop', image: 'https://jars.example.com/shop-1.0.0-ark-biz.jar', env: [{ name, value: 'x' }] },
      ];
      const { selector, template } = manifestOf().spec;
      const spec = { selector, template: { metadata: template.metadata, spec: { containers } } };
      return kubectl(['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'], {
        apiVersion,
        kind,
        metadata,
        spec,
      });
    };
    for (const name of ['A', 'B']) expect(await applied(`of-${name}`, name)).toMatchObject({ isDone: true });
    const { spec } = await world.admin.get(moduleDeploymentPath());
    expect(spec.template.spec.containers[0].env).toEqual([
      { name: 'A', value: 'x' },
      { name: 'B', value: 'x' },
    ]);
  });

  it('with peer and replicas, with a warning, and a second time', async () => {
    const peers = manifestOf((_template, spec) => Object.assign(spec, { peer: true, replicas: 3 }));
    for (let time = 0; time < 2; time++) {
      const answer = await kubectl(['apply', '-f', '-'], peers);
      expect(answer).toMatchObject({ isDone: true, output: expect.stringContaining('Warning: spec.replicas') });
      // No base fits.
      await eventually(async () => expect((await world.admin.get(moduleDeploymentPath())).spec.replicas).toBe(0));
    }
  });
});

async function recorded(count: number): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await world.admin.get(moduleDeploymentPath());
    expect([status?.observedGeneration, status?.revision]).toEqual([metadata.generation, count]);
  });
}

describe('a ModuleDeployment', () => {
  const versionOf = async (): Promise<string> =>
    (await world.admin.get(moduleDeploymentPath())).spec.template.metadata.labels.version;

  it('keeps its revision when its template changes in nothing that matters', async () => {
    await kubectl(['apply', '-f', '-'], manifestOf());
    await recorded(1);
    const same = manifestOf(({ metadata: ofPods, spec }) => {
      Object.assign(ofPods, { annotations: {}, creationTimestamp: null });
      Object.assign(spec, { restartPolicy: 'Always', initContainers: [], dnsPolicy: 'ClusterFirst' });
      Object.assign(spec.containers[0], { args: [], ports: null, resources: {}, imagePullPolicy: 'IfNotPresent' });
    });
    expect(await kubectl(['apply', '-f', '-'], same)).toMatchObject({ isDone: true });
    const { metadata } = await world.admin.get(moduleDeploymentPath());
    expect(metadata.generation).toBe(2);
    await recorded(1);
    const revisions = await world.admin.list(REVISIONS);
    expect(revisions.filter((one) => one.metadata.ownerReferences[0].uid === metadata.uid)).toHaveLength(1);
  });

  it('can be applied by the server after a rollback, without a conflict', async () => {
    const of = (version: string) => manifestOf(() => {}, version);
    for (const [index, version] of ['1.0.0', '2.0.0'].entries()) {
      expect(await serverSide(of(version))).toMatchObject({ isDone: true });
      await recorded(index + 1);
    }
    await world.admin.mergePatch(moduleDeploymentPath(), { spec: { rollbackTo: {} } });
    await recorded(3);
    expect(await versionOf()).toBe('1.0.0');
    expect(await serverSide(of('2.0.0'))).toEqual({ isDone: true, output: expect.not.stringContaining('conflict') });
    expect(await versionOf()).toBe('2.0.0');
    await recorded(4);
  });

  it('refuses a new template together with a rollback', async () => {
    for (const [index, version] of ['1.0.0', '2.0.0'].entries()) {
      await kubectl(
        ['apply', '-f', '-'],
        manifestOf(() => {}, version),
      );
      await recorded(index + 1);
    }
    const both = manifestOf((_template, spec) => Object.assign(spec, { rollbackTo: { revision: 1 } }), '3.0.0');
    expect(await kubectl(['apply', '-f', '-'], both)).toEqual({
      isDone: false,
      output: expect.stringContaining('would replace the new spec.template by that of revision 1'),
    });
    expect(await versionOf()).toBe('2.0.0');
  });

  it('is listed by kubectl get all', async () => {
    await kubectl(['apply', '-f', '-'], manifestOf());
    expect((await kubectl(['get', 'all'])).output).toContain('moduledeployment.platform.koupleless.io/shop');
  });

  it('that was stored before its template was checked can be read, labelled, paused and scaled', async () => {
    const path = moduleDeploymentPath(STORED_BEFORE);
    const { spec } = await world.admin.get(path);
    expect(spec.template.spec).toMatchObject({ tolerations: 'abc' });
    await world.admin.mergePatch(path, { metadata: { labels: { changed: 'true' } }, spec: { paused: true } });
    expect(await kubectl(['scale', 'md', STORED_BEFORE, '--replicas=2'])).toMatchObject({ isDone: true });
    expect((await world.admin.get(path)).spec).toMatchObject({ paused: true, replicas: 2 });
  });

  it('that was applied by the server before its lists had keys is applied once more, and then loses what its manifest loses', async () => {
    // The first apply owns the items of the lists. Before it, nobody does, and none of them would be removed.
    for (const name of ['OLD', 'NEW']) expect(await serverSide(appliedBefore(name))).toMatchObject({ isDone: true });
    const { spec } = await world.admin.get(moduleDeploymentPath(APPLIED_BEFORE));
    expect(spec.template.spec.containers[0].env).toEqual([
      { name: 'BIZ_VERSION', value: '1.0.0' },
      { name: 'NEW', value: 'x' },
    ]);
  });
});

it(`the types of a Pod are those of Kubernetes ${KUBERNETES_VERSION}; npm run pod-types writes them`, async () => {
  expect(podTypesOf(await world.admin.get('/openapi/v3/apis/apps/v1'))).toEqual(POD_TYPES);
});
