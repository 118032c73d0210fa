import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PODS } from '../../../../src/kube/resource.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { MODULES } from '../../../../src/platform/catalog/module/module.ts';
import { EXITED_RECORDS, type ExitedRecordObject } from '../../../../src/platform/catalog/record/exited-record.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';
import { runsOf } from '../../../support/property-runs.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const NAME = 'shop-cart';
/** Few, so that names are used again. */
const POD_NAMES = ['a', 'b', 'c', 'd'] as const;
const LABELS = {
  'virtual-kubelet.koupleless.io/component': 'module',
  'platform.koupleless.io/app': 'shop',
  'module.koupleless.io/name': 'cart',
};

const names = fc.subarray([...POD_NAMES], { minLength: 1 });
const happening = fc.oneof(
  { weight: 5, arbitrary: fc.record({ created: names }) },
  { weight: 5, arbitrary: fc.record({ removed: names }) },
  fc.record({ marked: names }),
  fc.record({ unlabelled: names }),
  fc.record({ labelled: names }),
  { weight: 3, arbitrary: fc.record({ isAnswerLost: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ seconds: fc.nat(15) }) },
  { weight: 2, arbitrary: fc.record({ stops: fc.constant(true) }) },
  { weight: 2, arbitrary: fc.record({ removedAtCrash: names }) },
  { weight: 3, arbitrary: fc.record({ starts: fc.constant(true) }) },
  fc.record({ recreated: fc.boolean() }),
  fc.record({ recordDeleted: fc.constant(true) }),
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

interface ModelPod {
  readonly uid: string;
  isLabelled: boolean;
  isDeleting: boolean;
}

/** The world as it is, and what a record has to say of it. */
class Model {
  rig = new PlatformRig(CATALOG, KNOWN);
  #isRunning = false;
  #count = 0;
  readonly #pods = new Map<string, ModelPod>();
  /** UIDs of Pods that went and have to be in the record. */
  readonly #required = new Set<string>();
  /** UIDs of Pods that went and may be in the record: nobody saw them while they had their labels. */
  readonly #allowed = new Set<string>();

  async start(): Promise<void> {
    await this.#startController();
    await this.#putModule();
  }

  async happen(what: Happening): Promise<void> {
    if ('created' in what) await this.#each(what.created, (name) => this.#create(name));
    else if ('removed' in what) await this.#each(what.removed, (name) => this.#remove(name));
    else if ('marked' in what) await this.#each(what.marked, (name) => this.#mark(name));
    else if ('unlabelled' in what) await this.#each(what.unlabelled, (name) => this.#label(name, false));
    else if ('labelled' in what) await this.#each(what.labelled, (name) => this.#label(name, true));
    else if ('isAnswerLost' in what) this.rig.loseNextAnswer(what.isAnswerLost);
    else if ('seconds' in what) for (let at = 0; at < what.seconds; at += 5) await this.rig.rest();
    else if ('stops' in what) await this.stopController();
    else if ('removedAtCrash' in what) await this.#crash(what.removedAtCrash);
    else if ('starts' in what) await this.#startController();
    else if ('recreated' in what) await this.#recreate(what.recreated);
    else await this.#deleteRecord();
  }

  /** Ends with a controller that has had time for everything. */
  async rest(): Promise<void> {
    this.rig.loseNextAnswer(undefined);
    await this.#startController();
    for (let turn = 0; turn < 12; turn++) await this.rig.rest();
  }

  get record(): ExitedRecordObject | undefined {
    return this.rig.all(EXITED_RECORDS)[0] as ExitedRecordObject | undefined;
  }

  check(): void {
    const { status, metadata } = this.record ?? {};
    const recorded = status?.pods.map(({ uid }) => uid) ?? [];
    expect(recorded, 'each once').toEqual([...new Set(recorded)]);
    expect(status?.exited ?? 0).toBe(recorded.length);
    expect(
      [...this.#required].filter((uid) => !recorded.includes(uid)),
      'lost',
    ).toEqual([]);
    const known = new Set([...this.#required, ...this.#allowed]);
    expect(
      recorded.filter((uid) => !known.has(uid)),
      'not gone, or of an earlier Module',
    ).toEqual([]);
    const labelled = [...this.#pods.values()].filter(({ uid, isLabelled }) => isLabelled && !recorded.includes(uid));
    expect((status?.live ?? []).map(({ uid }) => uid).sort()).toEqual(labelled.map(({ uid }) => uid).sort());
    if (metadata) expect(metadata.ownerReferences?.[0]?.uid).toBe(this.rig.all(MODULES)[0]?.metadata.uid);
  }

  /** All at once: the controller sees them when all have happened. */
  async #each(all: readonly string[], act: (name: string) => Promise<void> | undefined): Promise<void> {
    await Promise.all(all.map(act));
  }

  #create(name: string): Promise<void> | undefined {
    if (this.#pods.has(name)) return undefined;
    this.#pods.set(name, { uid: `${name}-${++this.#count}`, isLabelled: true, isDeleting: false });
    return this.#put(name);
  }

  #remove(name: string): Promise<void> | undefined {
    const pod = this.#pods.get(name);
    if (pod === undefined) return undefined;
    this.#pods.delete(name);
    // What the record does not have yet, only a controller that runs can have seen.
    const isSeen = this.#isRunning || this.#isInRecord(pod.uid);
    if (isSeen && pod.isLabelled) this.#required.add(pod.uid);
    else this.#allowed.add(pod.uid);
    return this.rig.remove(PODS, name);
  }

  #label(name: string, isLabelled: boolean): Promise<void> | undefined {
    const pod = this.#pods.get(name);
    if (pod === undefined) return undefined;
    // One that is being deleted is taken for gone.
    if (pod.isDeleting) this.#allowed.add(pod.uid);
    pod.isLabelled = isLabelled;
    return this.#put(name);
  }

  #mark(name: string): Promise<void> | undefined {
    const pod = this.#pods.get(name);
    if (pod) pod.isDeleting = true;
    return this.#put(name);
  }

  #put(name: string): Promise<void> | undefined {
    const pod = this.#pods.get(name);
    if (pod === undefined) return undefined;
    const { uid, isLabelled, isDeleting } = pod;
    const creationTimestamp = `2026-11-28T10:00:${String(this.#count % 60).padStart(2, '0')}Z`;
    const own = { name, namespace: 'default', uid, creationTimestamp, labels: isLabelled ? LABELS : {} };
    const metadata = { ...own, ...(isDeleting && { deletionTimestamp: '2026-11-28T11:00:00Z' }) };
    return this.rig.put(PODS, { metadata, spec: { containers: [] } } as never);
  }

  #isInRecord(uid: string): boolean {
    const { metadata, status } = this.record ?? {};
    const isOwn = metadata?.ownerReferences?.[0]?.uid === this.rig.all(MODULES)[0]?.metadata.uid;
    return isOwn && status?.live.some((one) => one.uid === uid) === true;
  }

  async stopController(): Promise<void> {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    await this.rig.stop();
    const recorded = this.record?.status?.pods.map(({ uid }) => uid) ?? [];
    for (const uid of this.#required) {
      if (recorded.includes(uid) || this.#isInRecord(uid)) continue;
      this.#required.delete(uid);
      this.#allowed.add(uid);
    }
  }

  /** It stops while it handles these deletions. */
  async #crash(all: readonly string[]): Promise<void> {
    const removals = this.#each(all, (name) => this.#remove(name));
    await this.stopController();
    await removals;
  }

  async #startController(): Promise<void> {
    if (this.#isRunning) return;
    this.rig = new PlatformRig(CATALOG, KNOWN, {}, this.rig);
    await this.rig.start();
    this.#isRunning = true;
  }

  async #putModule(): Promise<void> {
    const metadata = { name: NAME, namespace: 'default', generation: 1, uid: `module-${++this.#count}` };
    await this.rig.put(MODULES, { metadata, spec: { app: 'shop', module: 'cart', base: { name: 'base' } } } as never);
  }

  /** Nobody deletes the former record in this world, unless the API server is quick. */
  async #recreate(isCollected: boolean): Promise<void> {
    await this.rig.remove(MODULES, NAME);
    if (isCollected) await this.#deleteRecord();
    await this.#putModule();
    this.#startOver();
  }

  async #deleteRecord(): Promise<void> {
    await this.rig.remove(EXITED_RECORDS, NAME);
    this.#startOver();
  }

  #startOver(): void {
    this.#required.clear();
    this.#allowed.clear();
  }
}

it('whatever happens, each Pod that has gone is in the record once, and no Pod that lives', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 25 }), async (all) => {
      const model = new Model();
      await model.start();
      try {
        for (const what of all) await model.happen(what);
        await model.rest();
        model.check();
        const version = model.record?.metadata.resourceVersion;
        await model.rest();
        expect(model.record?.metadata.resourceVersion).toBe(version);
      } finally {
        await model.stopController();
      }
    }),
    { numRuns: runsOf(300) },
  );
}, 120_000);
