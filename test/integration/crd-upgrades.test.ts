import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Crd, SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import { EXPORT_SERVICE_CRD } from '../../src/platform/export/export-service.ts';
import { MODULE_DEPLOYMENT_CRD } from '../../src/platform/rollout/module-deployment.ts';
import { eventually } from '../support/eventually.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { World } from '../support/world.ts';

/** As `src/assembly/process.ts` installs CRDs. */
const FIELD_MANAGER = 'module-controller';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const OBJECTS = '/apis/platform.koupleless.io/v1alpha1/namespaces/default';

let world: World;
let platform: Platform;

/** The CRD of a version of this program before any field had a rule. */
function earlier({ metadata, spec }: Crd): object {
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

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
});

afterAll(async () => {
  await platform?.stop();
  await world?.stop();
});

it('an upgrade of a CRD keeps stored objects readable, and lets them be changed', async () => {
  const { admin } = world;
  const crds = [MODULE_DEPLOYMENT_CRD, EXPORT_SERVICE_CRD];
  for (const crd of crds)
    await admin.applyObject(`${DEFINITIONS}/${crd.metadata.name}`, earlier(crd) as never, FIELD_MANAGER);
  // Its Service does not exist, so nothing is exported, and the controller leaves it alone.
  const foreign = {
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ExportService',
    metadata: { name: 'shop' },
    spec: { serviceRef: { name: 'shop' } },
  };
  const rollout = moduleDeployment({ replicas: 0, spec: { paused: true, fieldOfThen: 'kept until it is written' } });
  const objects = [
    ['moduledeployments', rollout],
    ['exportservices', foreign],
  ] as const;
  for (const [plural, object] of objects)
    await eventually(async () => void (await admin.post(`${OBJECTS}/${plural}`, object as never)));

  const process = await platform.start('upgraded', 'rollout,export');
  const installed = (): unknown[] => process.lines.filter(({ msg }) => msg === 'CRD installed').map(({ crd }) => crd);
  await eventually(async () => expect(installed().sort()).toEqual(crds.map(({ metadata }) => metadata.name).sort()));
  for (const [plural, { spec, metadata }] of objects) {
    const path = `${OBJECTS}/${plural}/${metadata.name}`;
    const { fieldOfThen: _, ...kept } = spec as Record<string, unknown>;
    await eventually(async () => expect((await admin.get(path)).spec).toMatchObject(kept));
    await admin.mergePatch(path, { metadata: { labels: { changed: 'true' } } });
  }
  expect(process.lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
});
