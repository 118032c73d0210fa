import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { byVerbAndResource } from '../../../samples/control-plane/request-counts.ts';
import { apiVersionOf, collectionPathOf } from '../../../src/kube/resource.ts';
import { CATALOG_LABEL } from '../../../src/platform/catalog/compose/compose.ts';
import { CONFIG_FINALIZER } from '../../../src/platform/catalog/config/config-controller.ts';
import { configStatusOf } from '../../../src/platform/catalog/config/config-status.ts';
import { CONFIG_MARK, CONTENT_KEY, configMapNameOf } from '../../../src/platform/catalog/config/config-store.ts';
import { historyOf } from '../../../src/platform/catalog/config/history.ts';
import {
  type ConfigVersion,
  MODULE_CONFIGS,
  type ModuleConfigSpec,
} from '../../../src/platform/catalog/config/module-config.ts';
import { digestOf, sizeOf, sourceOf, versionIdOf } from '../../../src/platform/catalog/config/version.ts';
import { residentMibOf } from '../../support/cost.ts';
import { benchCase } from '../suite.ts';
import { withoutLeases } from './catalog-world.ts';
import { monotonicMs } from './monotonic.ts';
import { NAMESPACES, namespaceOf } from './objects.ts';
import type { CatalogStage } from './stage.ts';

const VERSIONS = 10;
/** Time of the first version of each. */
const FIRST_AT = Date.UTC(2026, 0, 1);
const LINES = 40;
const QUIET_MS = 60_000;

/** ModuleConfigs with their versions, as the controller has left them: it starts, and finds nothing to do. */
export const CONFIGS = benchCase({
  name: 'configs',
  isOptional: true,
  figures: {
    filled: { text: `until the API server has them, with ${VERSIONS} versions each`, unit: 's' },
    started: { text: 'from the start of the catalog until it asks for nothing', unit: 's' },
    requests: { text: 'requests of the platform in a minute of rest, without those of Leases', unit: '', atMost: 0 },
    writes: { text: 'writes from the start of the catalog on', unit: '', atMost: 0 },
    memoryBefore: { text: 'memory of the catalog without them', unit: 'MiB' },
    memory: { text: 'memory of the catalog', unit: 'MiB' },
    apiServerBefore: { text: 'memory of the API server without them', unit: 'MiB' },
    apiServer: { text: 'memory of the API server', unit: 'MiB' },
  },

  prepare: async (stage: CatalogStage) => {
    await stage.settled('catalog');
  },

  watched: () => [],

  async measure(stage) {
    const { world, configs } = stage;
    const apiServerMib = (): number => world.pids.apiServer.reduce((sum, pid) => sum + residentMibOf(pid), 0);
    const memoryBefore = residentMibOf(world.catalog.process);
    const apiServerBefore = apiServerMib();
    await world.stopCatalog();
    const startedAt = monotonicMs();
    await world.inParallel(
      Array.from({ length: configs }, (_, index) => index),
      async (index, send) => {
        const { config, status, contents } = objectsOf(index);
        const path = collectionPathOf(MODULE_CONFIGS, config.metadata.namespace);
        const created = await send('POST', path, config);
        const { uid, generation } = created.metadata;
        const owner = { apiVersion: apiVersionOf(MODULE_CONFIGS), kind: CONFIG_MARK, name: config.metadata.name, uid };
        for (const content of contents) {
          const metadata = { ...content.metadata, ownerReferences: [{ ...owner, controller: true }] };
          await send('POST', `/api/v1/namespaces/${config.metadata.namespace}/configmaps`, { ...content, metadata });
        }
        const whole = { ...created, status: { ...status, observedGeneration: generation } };
        await send('PUT', `${path}/${config.metadata.name}/status`, whole);
      },
    );
    const filledAt = monotonicMs();
    const mark = await world.world.controlPlane.mark();
    await world.startCatalog();
    await world.untilQuiet();
    const quietAt = monotonicMs();
    const rest = await world.world.controlPlane.mark();
    await delay(QUIET_MS);
    const requests = withoutLeases(await world.requestsSince(rest));
    const all = withoutLeases(await world.requestsSince(mark));
    const writes = all.where(({ verb }) => verb !== 'list' && verb !== 'get');
    return {
      values: {
        filled: (filledAt - startedAt) / 1000,
        started: (quietAt - filledAt) / 1000,
        requests: requests.count(),
        writes: writes.count(),
        memoryBefore,
        memory: residentMibOf(world.catalog.process),
        apiServerBefore,
        apiServer: apiServerMib(),
      },
      details: { configs, versions: VERSIONS, requests: byVerbAndResource(all) },
    };
  },
});

function contentOf(index: number, version: number): string {
  return Array.from({ length: LINES }, (_, line) => `shop.setting-${line}: value-${index}-${version}\n`).join('');
}

/** A ModuleConfig as somebody has written it last, its status, and the ConfigMaps of its versions. */
function objectsOf(index: number) {
  const namespace = namespaceOf(index % NAMESPACES);
  const name = `config-${index}`;
  const contents = Array.from({ length: VERSIONS }, (_, version) => contentOf(index, version));
  const versions = contents.map((content, version): ConfigVersion => {
    const whole = { content, instances: {}, parents: [] };
    const digest = digestOf(whole);
    const at = FIRST_AT + version * 60_000;
    const time = new Date(at).toISOString();
    const source = sourceOf({ content, instances: {}, parent: undefined });
    return { id: versionIdOf(digest, at), digest, source, time, lastActivated: time, size: sizeOf(whole) };
  });
  const [present] = versions.reverse();
  if (present === undefined) throw new Error('there is no version');
  const spec: ModuleConfigSpec = {
    target: { kind: 'Module', app: 'Shop', name: `module-${index}` },
    file: 'application.yaml',
    format: 'yaml',
    content: contents.at(-1) ?? '',
  };
  const history = historyOf({
    versions,
    inForce: present.id,
    present,
    activation: 'Automatic',
    wanted: '',
    inUse: new Set(),
    limit: VERSIONS,
    now: FIRST_AT,
  });
  const status = configStatusOf({
    generation: 1,
    spec,
    before: undefined,
    history,
    presentVersion: present.id,
    parent: '',
    cause: {},
    users: [],
    now: present.time,
  });
  const labels = { [CATALOG_LABEL.composed]: CONFIG_MARK };
  const config = {
    apiVersion: apiVersionOf(MODULE_CONFIGS),
    kind: MODULE_CONFIGS.kind,
    metadata: { namespace, name, finalizers: [CONFIG_FINALIZER] },
    spec,
  };
  return {
    config,
    status,
    contents: contents.map((content): KubeObject => {
      const digest = digestOf({ content, instances: {}, parents: [] });
      const metadata = { namespace, name: configMapNameOf(name, digest), labels };
      return { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true, data: { [CONTENT_KEY]: content } };
    }),
  };
}
