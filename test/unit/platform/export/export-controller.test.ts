import { describe, expect, it } from 'vitest';
import type { KubeObject, ServiceObject } from '../../../../src/kube/objects.ts';
import { ApiError } from '../../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../../src/logger.ts';
import { ExportController } from '../../../../src/platform/export/export-controller.ts';
import type { ExportServiceObject } from '../../../../src/platform/export/export-service.ts';
import { ExportWorld, fleet, podOf, serviceOf } from './export-world.ts';

const KEY = 't1/shop';

function errorOf(status: number): ApiError {
  return new ApiError(String(status), { status, reason: '', retryAfterMs: undefined, causes: undefined });
}

/** The API server's ExportService `t1/shop`, and a controller that writes it. */
class ControllerWorld extends ExportWorld {
  stored: ExportServiceObject | undefined;
  /** What the API server has of the Service; default: what the caches have. */
  service: ServiceObject | undefined;
  readonly writes: string[] = [];
  readonly events: string[] = [];
  isLeading = true;
  /** Of a status. */
  takesMs = 0;
  #version = 1000;
  readonly controller: ExportController;

  constructor() {
    super();
    const { table, exports, clock, metrics } = this;
    this.controller = new ExportController({
      table,
      exports,
      client: {
        create: async (object: ExportServiceObject) => {
          this.#permitted('create');
          if (this.stored) throw errorOf(409);
          return this.store({ ...object, metadata: { ...object.metadata, uid: `es-${this.#version}`, generation: 1 } });
        },
        update: async (object: ExportServiceObject) => {
          this.#permitted('status');
          this.clock.advance(this.takesMs);
          const { stored } = this;
          if (stored === undefined) throw errorOf(404);
          if (object.metadata.resourceVersion !== stored.metadata.resourceVersion) throw errorOf(409);
          return this.store({ ...stored, ...(object.status && { status: object.status }) });
        },
        mergePatch: async (_ref: unknown, patch: { metadata: object; spec: ExportServiceObject['spec'] }) => {
          this.#permitted('restore');
          const { stored } = this;
          if (stored === undefined) throw errorOf(404);
          const { resourceVersion: _, ...metadata } = patch.metadata as ExportServiceObject['metadata'];
          return this.store({
            ...stored,
            metadata: { ...stored.metadata, ...metadata },
            ...(patch.spec && { spec: patch.spec }),
          });
        },
        delete: async (_ref: unknown, { uid }: { uid?: string }) => {
          this.#permitted('delete');
          const { stored } = this;
          if (stored === undefined) throw errorOf(404);
          if (uid !== stored.metadata.uid) throw errorOf(409);
          this.stored = undefined;
          exports.deliver({ type: 'DELETED', object: stored });
        },
      } as never,
      services: {
        get: async () => {
          if (this.service === undefined) throw errorOf(404);
          return this.service as KubeObject;
        },
      },
      permit: () => this.isLeading,
      recorder: { event: (_subject, type, reason) => void this.events.push(`${type} ${reason}`) },
      clock,
      metrics,
      logger: silentLogger,
    });
  }

  #permitted(write: string): void {
    if (!this.isLeading) throw new Error('not permitted');
    this.writes.push(write);
  }

  store(object: ExportServiceObject): ExportServiceObject {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    this.stored = { ...structuredClone(object), metadata };
    this.exports.deliver({ type: 'PUT', object: this.stored });
    return structuredClone(this.stored);
  }

  /** As the queue does, until nothing is left to do. */
  async settle(): Promise<void> {
    for (let round = 0; round < 10; round++) {
      const { requeueAfterMs } = (await this.controller.reconcile(KEY)) ?? {};
      if (requeueAfterMs === undefined) return;
      this.clock.advance(requeueAfterMs);
    }
    throw new Error('does not settle');
  }
}

describe('the controller of ExportServices', () => {
  it('writes nothing before it knows all that is stored: another Service may have the host', async () => {
    const world = new ControllerWorld();
    world.exports.synced = false;
    world.put(serviceOf('shop'), ...fleet('shop', 1));
    expect(await world.controller.reconcile(KEY)).toEqual({ requeueAfterMs: 1_000 });
    expect(world.writes).toEqual([]);
    world.exports.synced = true;
    await world.settle();
    expect(world.writes).toEqual(['create', 'status']);
  });

  it('makes one, owned by its Service, and writes it when something has changed only', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'), ...fleet('shop', 1));
    await world.settle();
    await world.settle();
    expect(world.writes).toEqual(['create', 'status']);
    const owner = { apiVersion: 'v1', kind: 'Service', name: 'shop', uid: 'uid-shop', controller: true };
    expect(world.stored).toMatchObject({
      metadata: { name: 'shop', namespace: 't1', ownerReferences: [owner] },
      spec: { serviceRef: { name: 'shop' } },
      status: { serviceName: 'shop', summary: { backends: 1 }, observedGeneration: 1 },
    });
    world.put(podOf('shop', 'shop-1', { isReady: false }));
    await world.settle();
    expect(world.writes).toEqual(['create', 'status', 'status']);
    expect(world.stored?.status?.summary.backends).toBe(0);
  });

  it('writes once a second at most, and the last state in the end', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'), ...fleet('shop', 1));
    await world.settle();
    const startedAt = world.clock.now();
    for (let index = 0; index < 9; index++) {
      world.put(podOf('shop', 'shop-1', { isReady: index % 2 === 0 }));
      await world.controller.reconcile(KEY);
    }
    expect(world.clock.now() - startedAt).toBeLessThan(1_000);
    expect(world.writes).toEqual(['create', 'status']);
    expect(await world.controller.reconcile(KEY)).toBeUndefined();
    world.put(podOf('shop', 'shop-1', { isReady: false }));
    await world.settle();
    expect(world.writes).toEqual(['create', 'status', 'status']);
    expect(world.stored?.status?.summary.backends).toBe(0);
  });

  it('counts the second from the answer of the API server', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'), ...fleet('shop', 1));
    await world.settle();
    world.clock.advance(1_000);
    world.takesMs = 900;
    world.put(podOf('shop', 'shop-1', { isReady: false }));
    await world.controller.reconcile(KEY);
    world.put(podOf('shop', 'shop-1'));
    expect(await world.controller.reconcile(KEY)).toEqual({ requeueAfterMs: 900 });
  });

  it('removes it with the label, and not while the API server has the Service still', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'));
    await world.settle();
    // The watch of Services is behind.
    world.service = serviceOf('shop');
    world.remove(serviceOf('shop'));
    expect(await world.controller.reconcile(KEY)).toEqual({ requeueAfterMs: 1_000 });
    expect(world.stored).toBeDefined();
    world.service = serviceOf('shop', { labels: {} });
    await world.settle();
    expect(world.stored).toBeUndefined();
  });

  it('removes it when its Service is gone, also when another one has its name', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'));
    await world.settle();
    world.remove(serviceOf('shop'));
    world.service = serviceOf('shop', { uid: 'another' });
    await world.settle();
    expect(world.stored).toBeUndefined();
  });

  it('makes it again for a Service of the same name', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'));
    await world.settle();
    world.put(serviceOf('shop', { uid: 'second' }));
    await world.settle();
    expect(world.writes).toEqual(['create', 'status', 'delete', 'create', 'status']);
    expect(world.stored?.metadata.ownerReferences?.[0]?.uid).toBe('second');
  });

  it('restores an owner reference that was removed, and the name of its Service', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'));
    await world.settle();
    const { stored } = world;
    const { ownerReferences, ...metadata } = (stored as ExportServiceObject).metadata;
    world.writes.length = 0;
    world.store({ ...(stored as ExportServiceObject), metadata });
    await world.settle();
    expect(world.stored?.metadata.ownerReferences).toEqual(ownerReferences);
    world.store({ ...(world.stored as ExportServiceObject), spec: { serviceRef: { name: 'other' } } });
    await world.settle();
    expect(world.stored?.spec).toEqual({ serviceRef: { name: 'shop' } });
    expect(world.writes).toEqual(['restore', 'restore']);
    expect(world.events).toEqual([]);
  });

  it('reports once that a group does not take the Service', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('a-older', { createdAt: '2025-01-01T00:00:00Z' }), serviceOf('shop'));
    await world.settle();
    expect(world.events).toEqual(['Warning ExportConflict']);
    world.put(...fleet('shop', 1));
    await world.settle();
    expect(world.events).toHaveLength(1);
    world.remove(serviceOf('a-older'));
    await world.settle();
    expect(world.events).toHaveLength(1);
    world.put(serviceOf('a-older', { createdAt: '2025-01-01T00:00:00Z', labels: { BCSGROUP: 'other' } }));
    await world.settle();
    expect(world.events).toHaveLength(1);
  });

  it('leaves one alone that is not its own, and says so', async () => {
    const world = new ControllerWorld();
    world.store({
      metadata: { name: 'shop', namespace: 't1', uid: 'foreign' },
      spec: { serviceRef: { name: 'shop' } },
    });
    world.put(serviceOf('shop'));
    await world.settle();
    world.remove(serviceOf('shop'));
    await world.settle();
    expect(world.writes).toEqual([]);
    expect(world.events).toEqual(['Warning OutControl']);
  });

  it('waits for one that is being deleted', async () => {
    const world = new ControllerWorld();
    const metadata = { name: 'shop', namespace: 't1', uid: 'old', deletionTimestamp: '2026-01-01T00:00:00Z' };
    world.store({ metadata, spec: { serviceRef: { name: 'shop' } } });
    world.put(serviceOf('shop'));
    await world.settle();
    expect(world.writes).toEqual([]);
  });

  it('goes on where another process has written', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'), ...fleet('shop', 1));
    world.exports.isPaused = true;
    world.store({
      metadata: {
        name: 'shop',
        namespace: 't1',
        uid: 'es',
        generation: 1,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'shop', uid: 'uid-shop', controller: true }],
      },
      spec: { serviceRef: { name: 'shop' } },
    });
    expect(await world.controller.reconcile(KEY)).toEqual({ requeueAfterMs: 1_000 });
    world.exports.resume();
    await world.settle();
    expect(world.stored?.status?.summary.backends).toBe(1);
  });

  it('writes one at once whose Service has come back, and knows nothing of the former one', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'), ...fleet('shop', 1));
    await world.settle();
    world.remove(serviceOf('shop'));
    await world.settle();
    await world.settle();
    world.put(serviceOf('shop', { uid: 'second' }));
    expect(world.clock.now()).toBeLessThan(1_000);
    expect(await world.controller.reconcile(KEY)).toBeUndefined();
    expect(world.writes).toEqual(['create', 'status', 'delete', 'create', 'status']);
  });

  it('writes nothing when it leads no longer', async () => {
    const world = new ControllerWorld();
    world.put(serviceOf('shop'));
    await world.settle();
    world.isLeading = false;
    world.remove(serviceOf('shop'));
    expect(await world.controller.reconcile(KEY)).toBeUndefined();
    expect(world.stored).toBeDefined();
  });
});
