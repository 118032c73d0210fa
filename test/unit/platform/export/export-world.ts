import type { ModulePod } from '../../../../src/kinds/module-pod.ts';
import { MODULE_PODS } from '../../../../src/kinds/module-pod.ts';
import { CACHED_TENANCIES, type CachedTenancy } from '../../../../src/kinds/module-tenancy.ts';
import type { CachedNode } from '../../../../src/kinds/vnode-object.ts';
import { VNODES } from '../../../../src/kinds/vnode-object.ts';
import type { KubeObject, NodeObject, PodObject, ServiceObject, ServicePort } from '../../../../src/kube/objects.ts';
import { silentLogger } from '../../../../src/logger.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { type CachedService, EXPORTED_SERVICES } from '../../../../src/platform/export/cached-service.ts';
import { type CachedExportService, projectExportService } from '../../../../src/platform/export/export-service.ts';
import { ExportTable } from '../../../../src/platform/export/export-table.ts';
import { exportStatusOf } from '../../../../src/platform/export/export-view.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeInformer } from '../../../support/fake-informer.ts';

let version = 0;

function metaOf(name: string, more: Partial<KubeObject['metadata']> = {}): KubeObject['metadata'] {
  const creationTimestamp = '2026-01-01T00:00:00Z';
  return { name, namespace: 't1', uid: `uid-${name}`, resourceVersion: String(++version), creationTimestamp, ...more };
}

export const HTTP_PORT: ServicePort = { name: 'http', port: 80, targetPort: 8080, appProtocol: 'http' };
export const TCP_PORT: ServicePort = { name: 'tcp', port: 28800, targetPort: 8080 };

export interface ServiceOptions {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly ports?: ServicePort[];
  readonly selector?: Record<string, string>;
  readonly namespace?: string;
  readonly uid?: string;
  readonly createdAt?: string;
}

/** Exported to the group `external` on a TCP port, unless said otherwise. */
export function serviceOf(name: string, options: ServiceOptions = {}): ServiceObject {
  const { labels = { BCSGROUP: 'external' }, annotations = {}, ports = [TCP_PORT], selector = { app: name } } = options;
  const { namespace = 't1', uid = `uid-${name}`, createdAt = '2026-01-01T00:00:00Z' } = options;
  return {
    metadata: metaOf(name, { labels, annotations, namespace, uid, creationTimestamp: createdAt }),
    spec: { selector, ports },
  };
}

export interface PodState {
  readonly node?: string;
  readonly version?: string;
  readonly labels?: Record<string, string>;
  readonly isReady?: boolean;
  /** ContainersReady; default as `isReady`. */
  readonly isServing?: boolean;
  /** Of the condition Ready. */
  readonly reason?: string;
  readonly isDeleting?: boolean;
  readonly createdAt?: string;
  readonly ip?: string;
  readonly gates?: Record<string, 'True' | 'False'>;
  readonly ports?: { name?: string; containerPort: number }[];
}

/** A Pod of the module `app`, Ready on its base, unless said otherwise. The address is that of its base. */
export function podOf(app: string, name: string, state: PodState = {}): PodObject {
  const { node = `vnode.${name}`, version: moduleVersion = '1.0.0', labels = {}, isReady = true } = state;
  const { isServing = isReady, isDeleting = false, createdAt = '2026-01-01T00:00:00Z', gates = {} } = state;
  const statusOf = (isTrue: boolean) => (isTrue ? 'True' : 'False');
  return {
    metadata: metaOf(name, {
      labels: { app, 'module.koupleless.io/version': moduleVersion, ...labels },
      creationTimestamp: createdAt,
      ...(isDeleting && { deletionTimestamp: createdAt }),
    }),
    spec: {
      nodeName: node,
      containers: [{ name: app, ...(state.ports && { ports: state.ports }) }],
      readinessGates: Object.keys(gates).map((conditionType) => ({ conditionType })),
    },
    status: {
      phase: 'Running',
      podIP: state.ip ?? `10.0.0.${name.replace(/\D/g, '')}`,
      conditions: [
        { type: 'Ready', status: statusOf(isReady), ...(state.reason !== undefined && { reason: state.reason }) },
        { type: 'ContainersReady', status: statusOf(isServing) },
        ...Object.entries(gates).map(([type, status]) => ({ type, status })),
      ],
    },
  };
}

export function nodeOf(
  name: string,
  ready: 'True' | 'False' | 'Unknown' = 'True',
  arkletPort?: number,
  ip?: string,
): NodeObject {
  const annotations = arkletPort === undefined ? {} : { 'platform.koupleless.io/arklet-port': String(arkletPort) };
  return {
    metadata: { ...metaOf(name), namespace: '', annotations } as KubeObject['metadata'],
    status: {
      conditions: [{ type: 'Ready', status: ready }],
      ...(ip !== undefined && { addresses: [{ type: 'InternalIP', address: ip }] }),
    },
  };
}

/** A table over caches that a test feeds. */
export class ExportWorld {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics();
  readonly services = new FakeInformer<CachedService>(
    this.clock,
    (raw) => EXPORTED_SERVICES.project(raw, {} as never),
    EXPORTED_SERVICES.indexers,
  );
  readonly pods = new FakeInformer<ModulePod>(
    this.clock,
    (raw) => MODULE_PODS.project(raw, {} as never),
    MODULE_PODS.indexers,
  );
  readonly nodes = new FakeInformer<CachedNode>(this.clock, (raw) => VNODES.project(raw, {} as never));
  readonly tenancies = new FakeInformer<CachedTenancy>(
    this.clock,
    (raw) => CACHED_TENANCIES.project(raw, {} as never),
    CACHED_TENANCIES.indexers,
  );
  readonly exports = new FakeInformer<CachedExportService>(this.clock, projectExportService);
  readonly table: ExportTable;
  readonly changes: string[][] = [];

  constructor({ dropsLost = false }: { readonly dropsLost?: boolean } = {}) {
    const { services, pods, nodes, exports, tenancies, clock, metrics } = this;
    this.table = new ExportTable({
      services,
      pods,
      nodes,
      exports,
      tenancies,
      clock,
      metrics,
      cluster: 'test',
      dropsLost,
      logger: silentLogger,
    });
    this.table.addListener((keys) => this.changes.push([...keys].sort()));
  }

  /** Delivers, and waits until the table has calculated. */
  put(...objects: (ServiceObject | PodObject | NodeObject)[]): this {
    for (const object of objects) this.#informerOf(object).deliver({ type: 'PUT', object });
    this.clock.advance(100);
    return this;
  }

  remove(...objects: (ServiceObject | PodObject | NodeObject)[]): this {
    for (const object of objects) this.#informerOf(object).deliver({ type: 'DELETED', object });
    this.clock.advance(100);
    return this;
  }

  /** A ModuleTenancy as it is now. */
  share(tenancy: KubeObject): this {
    const metadata = { ...tenancy.metadata, resourceVersion: String(++version) };
    this.tenancies.deliver({ type: 'PUT', object: { ...tenancy, metadata } });
    this.clock.advance(100);
    return this;
  }

  /** What the leader does: each Service's ExportService says what the table says now. */
  publish(...keys: string[]): this {
    for (const object of keys.map((key) => this.exportOf(key))) this.exports.deliver({ type: 'PUT', object });
    this.clock.advance(100);
    return this;
  }

  /** The ExportService that the leader would write now. */
  exportOf(key: string): KubeObject {
    const entry = this.table.get(key);
    if (entry === undefined) throw new Error(`${key} is not exported`);
    const { namespace, name, uid, view, conflicts, guestAt } = entry;
    const nowText = '2026-01-01T00:00:00Z';
    const owner = { apiVersion: 'v1', kind: 'Service', name, uid, controller: true };
    return {
      metadata: { ...metaOf(name, { namespace }), uid: `of-${uid}`, ownerReferences: [owner] },
      status: exportStatusOf({ view, conflicts, guestAt, generation: 1, stored: undefined, nowText }),
    } as KubeObject;
  }

  /** `10.0.0.1:8080`, or `10.0.0.1:8080*3` where the weight is not 1. */
  backends(key: string, port = 0): string[] {
    const found = this.table.get(key)?.view.exported.ports[port]?.backends ?? [];
    return found.map(
      ({ targetIP, targetPort, weight }) => `${targetIP}:${targetPort}${weight === 1 ? '' : `*${weight}`}`,
    );
  }

  namesOf(group: string): string[] {
    return this.table.entriesOf(group).map(({ key }) => key);
  }

  #informerOf(object: KubeObject): FakeInformer<never> {
    const informer = 'nodeName' in ((object as PodObject).spec ?? {}) ? this.pods : undefined;
    const isNode = object.metadata.name.startsWith('vnode.');
    return (informer ?? (isNode ? this.nodes : this.services)) as unknown as FakeInformer<never>;
  }
}

/** Bases that a Pod each runs on. */
export function fleet(app: string, count: number, state: PodState = {}, from = 1): (PodObject | NodeObject)[] {
  return Array.from({ length: count }, (_, index) => `${app}-${from + index}`).flatMap((name) => [
    nodeOf(`vnode.${name}`),
    podOf(app, name, state),
  ]);
}
