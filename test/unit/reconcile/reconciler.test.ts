import { beforeEach, describe, expect, it } from 'vitest';
import { ControllerError } from '../../../src/errors.ts';
import { objectKey } from '../../../src/kube/watch/informer-types.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { controllerKeyOf, Reconciler, type Result, TerminalError } from '../../../src/reconcile/reconciler.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { FakeInformer } from '../../support/fake-informer.ts';

interface Thing {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly target: string | undefined;
}

class ReconcilerRig {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics();
  readonly informer = new FakeInformer<Thing>(this.clock, ({ metadata }) => ({
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    target: metadata.labels?.target,
  }));
  readonly seen: string[] = [];
  /** What the next reconciles do; then they succeed. */
  readonly acts: (() => Result | undefined | Promise<undefined>)[] = [];
  isLeading = true;
  /** As the leader calls it. */
  onStarted = (): void => {};
  readonly reconciler: Reconciler;

  constructor(
    keysOf: (thing: Thing) => string[] = (thing) => [objectKey(thing)],
    isSame?: (old: Thing, thing: Thing) => boolean,
  ) {
    const { clock, metrics, informer } = this;
    this.reconciler = new Reconciler({
      name: 'things',
      workers: 2,
      reconcile: async (key) => {
        this.seen.push(key);
        return this.acts.shift()?.();
      },
      leader: {
        isLeading: () => this.isLeading,
        addListener: (listener) => {
          this.onStarted = () => listener.onStarted();
        },
      },
      clock,
      logger: silentLogger,
      metrics,
    }).watch({ informer, keysOf, ...(isSame && { isSame }) });
    void this.reconciler.run(new AbortController().signal);
  }

  put(name: string, version: string, target?: string): void {
    const labels = target === undefined ? {} : { target };
    const metadata = { namespace: 'ns', name, uid: name, resourceVersion: version, labels };
    this.informer.deliver({ type: 'PUT', object: { metadata } });
  }

  drop(name: string, version: string): void {
    const metadata = { namespace: 'ns', name, uid: name, resourceVersion: version };
    this.informer.deliver({ type: 'DELETED', object: { metadata } });
  }

  async pass(ms: number): Promise<string[]> {
    await this.clock.advanceAsync(ms);
    await settle();
    return this.seen.splice(0);
  }

  async counts(): Promise<Record<string, number>> {
    const { values } = await this.metrics.reconciles.get();
    return Object.fromEntries(values.map(({ labels, value }) => [String(labels.result), value]));
  }
}

let rig: ReconcilerRig;

beforeEach(() => {
  rig = new ReconcilerRig();
});

describe('a reconciler', () => {
  it('looks at an object that is added, changed and deleted', async () => {
    rig.put('a', '1');
    expect(await rig.pass(0)).toEqual(['ns/a']);
    rig.put('a', '2');
    rig.put('a', '3');
    expect(await rig.pass(0)).toEqual(['ns/a']);
    rig.drop('a', '4');
    expect(await rig.pass(0)).toEqual(['ns/a']);
  });

  it('looks at what an object concerns now and what it concerned before', async () => {
    rig = new ReconcilerRig(({ target }) => (target === undefined ? [] : [target]));
    rig.put('a', '1', 'x');
    await rig.pass(0);
    rig.put('a', '2', 'y');
    expect(await rig.pass(0)).toEqual(['x', 'y']);
  });

  it('does not look at what an update leaves as it was', async () => {
    const isSame = (old: Thing, thing: Thing): boolean => old.target === thing.target;
    rig = new ReconcilerRig(undefined, isSame);
    rig.put('a', '1', 'x');
    expect(await rig.pass(0)).toEqual(['ns/a']);
    rig.put('a', '2', 'x');
    expect(await rig.pass(60_000)).toEqual([]);
    rig.put('a', '3', 'y');
    expect(await rig.pass(0)).toEqual(['ns/a']);
    rig.drop('a', '4');
    expect(await rig.pass(0)).toEqual(['ns/a']);
  });

  it('looks again when it was asked to, and not before', async () => {
    rig.acts.push(() => ({ requeueAfterMs: 5_000 }));
    rig.put('a', '1');
    expect(await rig.pass(4_999)).toEqual(['ns/a']);
    expect(await rig.pass(1)).toEqual(['ns/a']);
    expect(await rig.pass(60_000)).toEqual([]);
    expect(await rig.counts()).toEqual({ success: 1, requeue: 1, error: 0, terminal: 0 });
  });

  it('tries an error again with a growing delay', async () => {
    const fail = (): never => {
      throw new ControllerError('Kube.ConnectionFailed', 'cut');
    };
    rig.acts.push(fail, fail);
    rig.put('a', '1');
    expect(await rig.pass(99)).toEqual(['ns/a']);
    expect(await rig.pass(1)).toEqual(['ns/a']);
    expect(await rig.pass(199)).toEqual([]);
    expect(await rig.pass(1)).toEqual(['ns/a']);
    expect(await rig.counts()).toEqual({ success: 1, requeue: 0, error: 2, terminal: 0 });
  });

  it('tries a terminal error again only when the object changes', async () => {
    rig.acts.push(() => {
      throw new TerminalError('Config.Invalid', 'spec.replicas is negative');
    });
    rig.put('a', '1');
    expect(await rig.pass(600_000)).toEqual(['ns/a']);
    rig.put('a', '2');
    expect(await rig.pass(0)).toEqual(['ns/a']);
    expect(await rig.counts()).toEqual({ success: 1, requeue: 0, error: 0, terminal: 1 });
  });
});

it('lets the event loop turn between long reconciles that wait for nothing', async () => {
  const rig = new ReconcilerRig();
  const keys = ['ns/a', 'ns/b', 'ns/c', 'node-1'];
  rig.acts.push(
    ...keys.map(() => () => {
      rig.clock.stopFor(10);
      return undefined;
    }),
  );
  for (const key of keys) rig.reconciler.enqueue(key);
  const begun: number[] = [];
  while (rig.acts.length > 0) {
    await settle();
    begun.push(rig.seen.splice(0).length);
  }
  expect(Math.max(...begun)).toBe(1);
});

describe('a reconciler of keys of several namespaces', () => {
  const enqueue = (...keys: readonly string[]): void => {
    for (const key of keys) rig.reconciler.enqueue(key);
  };
  const busy = (): Promise<undefined> => new Promise(() => {});

  it('begins with one key of each namespace, and cluster-scoped keys are together like one', async () => {
    enqueue('large/a', 'large/b', 'large/c', 'small/a', 'node-1', 'node-2');
    expect(await rig.pass(0)).toEqual(['large/a', 'small/a', 'node-1', 'large/b', 'node-2', 'large/c']);
  });

  it('takes the next step of an object that has more to do when all that wait have had their turn', async () => {
    const more = (): Result => ({ requeueAfterMs: 0 });
    rig.acts.push(more, () => undefined, more);
    enqueue('large/a', 'large/b', 'large/c', 'small/a');
    expect(await rig.pass(0)).toEqual(['large/a', 'small/a', 'large/b', 'large/c', 'large/a', 'large/b']);
    expect(await rig.counts()).toEqual({ success: 4, requeue: 2, error: 0, terminal: 0 });
  });

  it('lets the slow objects of one namespace take all its workers, and no other namespace wait', async () => {
    rig.acts.push(busy, busy);
    enqueue('slow/a', 'slow/b', 'slow/c');
    expect(await rig.pass(0)).toEqual(['slow/a', 'slow/b']);
    enqueue('small/a', 'small/b', 'node-1');
    expect(await rig.pass(60_000)).toEqual(['small/a', 'node-1', 'small/b']);
  });
});

describe('a reconciler of a replica that does not lead', () => {
  it('does nothing, and looks at everything when it comes to lead', async () => {
    rig.isLeading = false;
    rig.put('a', '1');
    rig.put('b', '1');
    expect(await rig.pass(60_000)).toEqual([]);
    rig.isLeading = true;
    rig.onStarted();
    expect((await rig.pass(0)).sort()).toEqual(['ns/a', 'ns/b']);
  });

  it('looks at further keys too when it comes to lead, as they are then', async () => {
    const keys = ['one'];
    rig.reconciler.addKeys(() => keys);
    keys.push('ns/a');
    rig.put('a', '1');
    expect(await rig.pass(0)).toEqual(['ns/a']);
    rig.onStarted();
    expect((await rig.pass(0)).sort()).toEqual(['ns/a', 'one']);
  });

  it('drops what waits when it leads no longer', async () => {
    rig.acts.push(() => ({ requeueAfterMs: 1_000 }));
    rig.put('a', '1');
    await rig.pass(0);
    rig.isLeading = false;
    expect(await rig.pass(60_000)).toEqual([]);
  });
});

describe('the key of the controlling owner', () => {
  const ROLLOUT = { group: 'apps.koupleless.io', kind: 'ModuleDeployment' };
  const owner = { apiVersion: 'apps.koupleless.io/v1', kind: 'ModuleDeployment', name: 'm', controller: true };

  it.each([
    ['its namespace and name', 'ns', [owner], 'ns/m'],
    ['of another version', 'ns', [{ ...owner, apiVersion: 'apps.koupleless.io/v2' }], 'ns/m'],
    ['its name alone for a cluster-scoped object', '', [owner], 'm'],
    ['none of an owner that does not control', 'ns', [{ ...owner, controller: false }], undefined],
    ['none of another group', 'ns', [{ ...owner, apiVersion: 'apps/v1' }], undefined],
    ['none of another kind', 'ns', [{ ...owner, kind: 'Deployment' }], undefined],
    ['none without owners', 'ns', [], undefined],
  ])('is %s', (_text, namespace, owners, key) => {
    expect(controllerKeyOf({ namespace, owners }, ROLLOUT)).toBe(key);
  });
});
