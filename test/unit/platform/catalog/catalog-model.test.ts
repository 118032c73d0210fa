import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MODULE_DEPLOYMENTS } from '../../../../src/kinds/workload-kinds.ts';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import { type ResourceKind, SERVICES } from '../../../../src/kube/resource.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { CATALOG_ANNOTATION, CATALOG_LABEL, compose } from '../../../../src/platform/catalog/compose/compose.ts';
import { composedPartOf, partsOf } from '../../../../src/platform/catalog/compose/composed-object.ts';
import { CACHED_MODULES } from '../../../../src/platform/catalog/module/cached-module.ts';
import { MODULES, type ModuleObject, type ModuleSpec } from '../../../../src/platform/catalog/module/module.ts';
import { releaseInForce } from '../../../../src/platform/catalog/module/release-in-force.ts';
import { MODULE_RELEASES } from '../../../../src/platform/catalog/release/module-release.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';
import { runsOf } from '../../../support/property-runs.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const IDS = ['r1', 'r2', 'r3'] as const;
const NAME = 'shop-cart';
/** Longer than the wait for a right. */
const QUIET_TURNS = 40;
/** 15 min, and the quiet time after them. */
const LONGEST_CONTEST_TURNS = 200;

const jarOf = (id: string): string => `https://jars.example.com/cart-${id.slice(1)}.0.0-ark-biz.jar`;

const TAMPERINGS = ['replicas', 'image', 'args', 'digest', 'owner', 'label', 'foreign'] as const;
const WEBHOOKS = ['none', 'mirror', 'unmark', 'undigest'] as const;

const happening = fc.oneof(
  { weight: 3, arbitrary: fc.record({ release: fc.constantFrom(undefined, ...IDS) }) },
  fc.record({ replicas: fc.nat(3) }),
  fc.record({ hasPorts: fc.boolean() }),
  fc.record({ rollbackTo: fc.nat(3) }),
  { weight: 2, arbitrary: fc.record({ published: fc.subarray([...IDS]) }) },
  { weight: 3, arbitrary: fc.record({ tampering: fc.constantFrom(...TAMPERINGS) }) },
  fc.record({ deleted: fc.constantFrom('workload', 'Service') }),
  { weight: 2, arbitrary: fc.record({ isAnswerLost: fc.boolean() }) },
  fc.record({ restarts: fc.constant(true) }),
  fc.record({ webhook: fc.constantFrom(...WEBHOOKS) }),
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

class Model {
  rig = new PlatformRig(CATALOG, KNOWN);
  #webhook: (object: KubeObject) => KubeObject = (object) => object;
  #spec: ModuleSpec = { app: 'shop', module: 'cart', base: { name: 'base' } };

  async start(): Promise<void> {
    await this.rig.start();
    await this.#apply({});
  }

  async happen(what: Happening): Promise<void> {
    if ('release' in what) await this.#apply({ release: what.release && { id: what.release } });
    else if ('replicas' in what) await this.#apply({ deploy: { replicas: what.replicas } });
    else if ('rollbackTo' in what) await this.#rollBack(what.rollbackTo);
    else if ('hasPorts' in what) await this.#apply({ ports: what.hasPorts ? [{ name: 'http', port: 8080 }] : [] });
    else if ('published' in what) await this.#publish(what.published);
    else if ('tampering' in what) await this.#tamper(what.tampering);
    else if ('deleted' in what) await this.rig.remove(what.deleted === 'Service' ? SERVICES : MODULE_DEPLOYMENTS, NAME);
    else if ('isAnswerLost' in what) this.rig.loseNextAnswer(what.isAnswerLost);
    else if ('webhook' in what) this.#mutate(what.webhook);
    else await this.#restart();
  }

  async rest(): Promise<void> {
    this.rig.loseNextAnswer(undefined);
    for (let turn = 0; turn < QUIET_TURNS || this.#isUnsettled; turn++) {
      expect(turn).toBeLessThan(LONGEST_CONTEST_TURNS);
      await this.rig.rest();
    }
  }

  /** It is contested, or nothing has shown yet that a webhook is gone. */
  get #isUnsettled(): boolean {
    const { status } = this.#find(MODULES) as ModuleObject;
    const messageOf = (wanted: string) => status?.conditions.find(({ type }) => type === wanted)?.message;
    const dropped = new Map([
      [CHANGES.unmark, CATALOG_LABEL.composed],
      [CHANGES.undigest, CATALOG_ANNOTATION.digest],
    ]).get(this.#webhook);
    const isOfNow = dropped !== undefined && messageOf('Altered')?.endsWith(`.${dropped}`);
    return messageOf('Contested') !== undefined || (messageOf('Altered') !== undefined && !isOfNow);
  }

  /** Versions of all that the catalog writes. */
  get versions(): unknown {
    const all = [MODULES, MODULE_DEPLOYMENTS, SERVICES].flatMap((kind) => this.rig.all(kind));
    return all.map(({ metadata }) => metadata.resourceVersion);
  }

  /** The composed part of the workload, and what it should be. */
  get workloads(): { readonly wanted: unknown; readonly found: unknown } {
    const module = CACHED_MODULES.project(this.#find(MODULES) as KubeObject, {} as never);
    const published = (this.#find(MODULE_RELEASES) as { spec?: never } | undefined)?.spec;
    const { spec, annotations, status } = module;
    const inForce = releaseInForce({ spec, annotations, before: status?.release, history: status?.history, published });
    const release = inForce.state === 'None' ? undefined : inForce.release;
    const live = this.#find(MODULE_DEPLOYMENTS);
    if (release === undefined) return { wanted: undefined, found: live };
    const composition = compose({ module, release, env: 'dev' });
    if ('fault' in composition) throw new Error(composition.fault);
    const wanted = partsOf(composition.workload);
    // It may have been written before the webhook was there, or while it was.
    const plain = (part: unknown) => unmutated(this.#webhook(part as KubeObject));
    return { wanted: plain(wanted), found: plain(composedPartOf(wanted, live)) };
  }

  get hasService(): { readonly wanted: boolean; readonly found: boolean } {
    return { wanted: (this.#spec.ports ?? []).length > 0, found: this.#find(SERVICES) !== undefined };
  }

  get ready(): string | undefined {
    const { status } = this.#find(MODULES) as ModuleObject;
    return status?.conditions.find(({ type }) => type === 'Ready')?.reason;
  }

  #find(kind: ResourceKind): KubeObject | undefined {
    return this.rig.all(kind).find(({ metadata }) => metadata.name === NAME);
  }

  async #apply(change: { [K in keyof ModuleSpec]?: ModuleSpec[K] | undefined }): Promise<void> {
    const { release, ...spec } = { ...this.#spec, ...change };
    this.#spec = { ...spec, ...(release && { release }) } as ModuleSpec;
    const before = this.#find(MODULES);
    const { generation = 0 } = (before?.metadata ?? {}) as { generation?: number };
    const metadata = { ...before?.metadata, name: NAME, namespace: 'default', generation: generation + 1 };
    await this.rig.put(MODULES, { ...before, metadata, spec: this.#spec } as never);
  }

  /** The controller writes the specification, as long as no other answer is lost. */
  async #rollBack(revision: number): Promise<void> {
    await this.#apply({ rollbackTo: { revision } });
    for (let turn = 0; turn < QUIET_TURNS; turn++) await this.rig.rest();
    const { spec } = this.#find(MODULES) as ModuleObject;
    expect(spec.rollbackTo).toBeUndefined();
    this.#spec = spec;
  }

  async #publish(ids: readonly string[]): Promise<void> {
    const releases = ids.map((id) => ({ id, image: jarOf(id) }));
    const metadata = { ...this.#find(MODULE_RELEASES)?.metadata, name: NAME, namespace: 'default' };
    await this.rig.put(MODULE_RELEASES, { metadata, spec: { releases } } as never);
  }

  async #tamper(how: (typeof TAMPERINGS)[number]): Promise<void> {
    // biome-ignore lint/suspicious/noExplicitAny: any field of it changes
    const object = structuredClone(this.#find(MODULE_DEPLOYMENTS)) as any;
    if (object === undefined) return;
    // Without its digest and its owner nothing says whose it is.
    const isBare = object.metadata.annotations[CATALOG_ANNOTATION.digest] === undefined;
    if (how === 'owner' && isBare) return;
    if (how === 'replicas') object.spec.replicas = 9;
    else if (how === 'image') object.spec.template.spec.containers[0].image = 'file:///evil.jar';
    else if (how === 'args') object.spec.template.spec.containers[0].args = ['--evil'];
    else if (how === 'digest') object.metadata.annotations = { [CATALOG_ANNOTATION.digest]: 'other' };
    else if (how === 'owner') object.metadata.ownerReferences = [];
    else if (how === 'label') delete object.metadata.labels[CATALOG_LABEL.composed];
    else object.spec.minReadySeconds = 7;
    await this.rig.put(MODULE_DEPLOYMENTS, object);
  }

  #mutate(webhook: (typeof WEBHOOKS)[number]): void {
    this.#webhook = CHANGES[webhook];
    this.rig.changeApplied(MODULE_DEPLOYMENTS, this.#webhook);
  }

  async #restart(): Promise<void> {
    await this.rig.stop();
    this.rig = new PlatformRig(CATALOG, KNOWN, {}, this.rig);
    await this.rig.start();
  }
}

/** What webhooks do: the jars come from a mirror, or a key of the catalog is dropped. */
const CHANGES: Readonly<Record<(typeof WEBHOOKS)[number], (object: KubeObject) => KubeObject>> = {
  none: (object) => object,
  mirror: mutated,
  unmark: (object) => without(object, 'labels', CATALOG_LABEL.composed),
  undigest: (object) => without(object, 'annotations', CATALOG_ANNOTATION.digest),
};

function without(object: KubeObject, field: 'labels' | 'annotations', key: string): KubeObject {
  const { [key]: _, ...rest } = object.metadata[field] ?? {};
  return { ...object, metadata: { ...object.metadata, [field]: rest } };
}

const MIRROR = '?mirror';

function mutated(object: KubeObject): KubeObject {
  const text = JSON.stringify(object);
  return JSON.parse(text.replaceAll(/\.jar(?:\?mirror)?"/g, `.jar${MIRROR}"`));
}

function unmutated(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll(`.jar${MIRROR}"`, '.jar"'));
}

it('whatever happens, a Module ends with what it composes, and then nothing is written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 25 }), async (all) => {
      const model = new Model();
      await model.start();
      try {
        for (const what of all) await model.happen(what);
        await model.rest();
        expect(model.workloads.found).toEqual(model.workloads.wanted);
        expect(model.hasService.found).toBe(model.hasService.wanted);
        expect(model.ready).toBeDefined();
        const { versions } = model;
        await model.rest();
        expect(model.versions).toEqual(versions);
      } finally {
        await model.rig.stop();
      }
    }),
    { numRuns: runsOf(300) },
  );
}, 120_000);
