import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MODULE_DEPLOYMENTS } from '../../../../../src/kinds/workload-kinds.ts';
import type { ConfigMapObject, KubeObject } from '../../../../../src/kube/objects.ts';
import type { ResourceKind } from '../../../../../src/kube/resource.ts';
import { CATALOG } from '../../../../../src/platform/catalog/catalog.ts';
import { argumentsOf } from '../../../../../src/platform/catalog/config/arguments.ts';
import { configMapNameOf } from '../../../../../src/platform/catalog/config/config-store.ts';
import {
  type ConfigVersion,
  MODULE_CONFIGS,
  type ModuleConfigObject,
  type ModuleConfigSpec,
} from '../../../../../src/platform/catalog/config/module-config.ts';
import { MODULES, type ModuleObject, type ModuleSpec } from '../../../../../src/platform/catalog/module/module.ts';
import { DEFINITIONS } from '../../../../manifests/definitions.ts';
import { PlatformRig } from '../../../../support/platform-rig.ts';
import { runsOf } from '../../../../support/property-runs.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const CONFIG_MAPS: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  isNamespaced: true,
};
const CONTENTS = ['a: 1', 'a: 2\nb: 1', 'a: 3', 'a: ['] as const;
const BROKEN = 'a: [';
/** Longer than the pauses between failed tries. */
const QUIET_TURNS = 40;

const happening = fc.oneof(
  { weight: 4, arbitrary: fc.record({ content: fc.constantFrom(...CONTENTS) }) },
  fc.record({ activation: fc.constantFrom('Automatic' as const, 'Manual' as const) }),
  { weight: 2, arbitrary: fc.record({ wanted: fc.integer({ min: -2, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ deleted: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ isAnswerLost: fc.boolean() }) },
  fc.record({ restarts: fc.constant(true) }),
  fc.record({ isRecreated: fc.constant(true) }),
  { weight: 2, arbitrary: fc.record({ follow: fc.constantFrom('Immediately' as const, 'Release' as const) }) },
  fc.record({ pin: fc.integer({ min: -1, max: 3 }) }),
  fc.record({ as: fc.constantFrom('Arguments' as const, 'Http' as const) }),
  { weight: 2, arbitrary: fc.record({ release: fc.constantFrom('r1', 'r2') }) },
  fc.record({ rollsBack: fc.constant(true) }),
);
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;
type Configured = NonNullable<ModuleSpec['configs']>[number];

/** One ModuleConfig, and a Module that uses it. */
class Model {
  rig = new PlatformRig(CATALOG, KNOWN);
  #spec: ModuleConfigSpec = {
    target: { kind: 'Module', app: 'shop' },
    file: 'application.yaml',
    format: 'yaml',
    content: CONTENTS[0],
  };
  #module: ModuleSpec = {
    app: 'shop',
    module: 'cart',
    base: { name: 'base' },
    release: releaseOf('r1'),
    configs: [{ name: 'db' }],
  };
  /** Contents by id that were in force at some rest; not those whose ConfigMap somebody has deleted. */
  readonly #seen = new Map<string, string>();
  /** Digests whose ConfigMap somebody has deleted. */
  readonly #deleted = new Set<string>();

  async start(): Promise<void> {
    await this.rig.start();
    await this.#putConfig({});
    await this.#putModule({});
  }

  async happen(what: Happening): Promise<void> {
    if ('content' in what) await this.#putConfig({ content: what.content });
    else if ('activation' in what) await this.#putConfig({ activation: what.activation });
    else if ('wanted' in what) await this.#putConfig({ activeVersion: this.#idAt(what.wanted) });
    else if ('deleted' in what) await this.#deleteConfigMap(what.deleted);
    else if ('isAnswerLost' in what) this.rig.loseNextAnswer(what.isAnswerLost);
    else if ('restarts' in what) await this.#restart();
    else if ('isRecreated' in what) await this.#recreate();
    else if ('release' in what) await this.#putModule({ release: releaseOf(what.release) });
    else if ('rollsBack' in what) await this.#rollBack();
    else if ('pin' in what) await this.#configure({ version: this.#idAt(what.pin) });
    else await this.#configure(what);
  }

  async rest(): Promise<void> {
    this.rig.loseNextAnswer(undefined);
    for (let turn = 0; turn < QUIET_TURNS; turn++) await this.rig.rest();
    const { status } = this.#config;
    const id = status?.activeVersion;
    const content = id === undefined ? undefined : this.#contentOf(id);
    if (id !== undefined && content !== undefined) this.#seen.set(id, content);
  }

  get written(): unknown {
    const all = [MODULE_CONFIGS, CONFIG_MAPS, MODULES, MODULE_DEPLOYMENTS].flatMap((kind) => this.rig.all(kind));
    return all.map(({ metadata }) => [metadata.name, metadata.resourceVersion]);
  }

  check(): void {
    const { metadata, spec, status } = this.#config;
    const versions = status?.versions ?? [];
    const own = this.#configMaps.filter((one) => one.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
    const names = versions.map(({ digest }) => configMapNameOf('db', digest));
    // Nothing is stored that no status has, and nothing is missing that nobody has deleted.
    expect(names).toEqual(expect.arrayContaining(own.map((one) => one.metadata.name)));
    const missing = versions.filter(({ id }) => this.#contentOf(id) === undefined);
    expect([...this.#deleted]).toEqual(expect.arrayContaining(missing.map(({ digest }) => digest)));
    for (const [id, content] of this.#seen) {
      const version = versions.find((one) => one.id === id);
      expect(version).toBeDefined();
      if (version && !this.#deleted.has(version.digest)) expect(this.#contentOf(id)).toBe(content);
    }
    const active = versions.find(({ id }) => id === status?.activeVersion);
    const isKnown = versions.some(({ id }) => id === spec.activeVersion);
    if (spec.activeVersion !== undefined && isKnown) expect(active?.id).toBe(spec.activeVersion);
    const isAutomatic = spec.activation !== 'Manual' && spec.activeVersion === undefined;
    const isReadable = active !== undefined && !this.#deleted.has(active.digest);
    if (isAutomatic && spec.content !== BROKEN) expect(active).toBeDefined();
    if (isAutomatic && spec.content !== BROKEN && isReadable) expect(this.#contentOf(active.id)).toBe(spec.content);
    this.#checkModule(versions);
  }

  /** The Pods have the versions that they name, and the Module the one that it should have. */
  #checkModule(versions: readonly ConfigVersion[]): void {
    const template = (this.rig.all(MODULE_DEPLOYMENTS)[0] as Workload | undefined)?.spec.template;
    const { status, spec } = this.rig.all(MODULES)[0] as ModuleObject;
    const [inForce] = status?.release?.configs ?? [];
    if (template === undefined || inForce === undefined) return;
    expect(template.metadata.annotations?.['platform.koupleless.io/configs']).toBe(`db@${inForce.version}`);
    const [wanted] = spec.configs as [Configured];
    const content = this.#seen.get(inForce.version) ?? this.#contentOf(inForce.version);
    const isPinned = wanted.version === undefined || wanted.version === inForce.version;
    // What is held has the form that it had.
    if (!isPinned || this.#conditionOf('ConfigFound') !== 'True') return;
    const overHttp = [{ name: 'db', format: 'yaml', version: inForce.version }] as const;
    const made =
      inForce.as === 'Http'
        ? argumentsOf('default', [], overHttp)
        : content !== undefined && argumentsOf('default', [{ name: 'db', format: 'yaml', content }]);
    if (made !== false && this.#conditionOf('Ready') !== 'Unavailable') {
      expect({ args: template.spec.containers[0]?.args ?? [] }).toEqual(made);
    }
    const active = this.#config.status?.activeVersion;
    const follows = wanted.follow === 'Immediately' && wanted.version === undefined;
    const isStored = versions.some(({ id, digest }) => id === active && !this.#deleted.has(digest));
    if (follows && isStored) expect(inForce.version).toBe(active);
  }

  #conditionOf(wanted: string): string | undefined {
    const { status } = this.rig.all(MODULES)[0] as ModuleObject;
    const found = status?.conditions.find(({ type }) => type === wanted);
    return wanted === 'Ready' ? found?.reason : found?.status;
  }

  get #config(): ModuleConfigObject {
    return this.rig.all(MODULE_CONFIGS)[0] as ModuleConfigObject;
  }

  get #configMaps(): ConfigMapObject[] {
    return this.rig.all(CONFIG_MAPS) as ConfigMapObject[];
  }

  #contentOf(id: string): string | undefined {
    const digest = this.#config.status?.versions?.find((one) => one.id === id)?.digest;
    const name = digest && configMapNameOf('db', digest);
    return this.#configMaps.find(({ metadata }) => metadata.name === name)?.data?.content;
  }

  /** -1: none. -2: one that there is not. */
  #idAt(index: number): string | undefined {
    if (index === -2) return '20200101000000-00000000';
    const ids = this.#config.status?.versions?.map(({ id }) => id) ?? [];
    return index === -1 ? undefined : ids[index];
  }

  async #putConfig(change: { [K in keyof ModuleConfigSpec]?: ModuleConfigSpec[K] | undefined }): Promise<void> {
    const { activeVersion, ...spec } = { ...this.#spec, ...change };
    this.#spec = { ...spec, ...(activeVersion && { activeVersion }) } as ModuleConfigSpec;
    await this.#put(MODULE_CONFIGS, 'db', this.#spec);
  }

  async #putModule(change: Partial<ModuleSpec>): Promise<void> {
    this.#module = { ...this.#module, ...change };
    await this.#put(MODULES, 'shop-cart', this.#module);
  }

  async #configure(change: { [K in keyof Configured]?: Configured[K] | undefined }): Promise<void> {
    const { version, ...rest } = { ...this.#module.configs?.[0], ...change };
    await this.#putModule({ configs: [{ ...rest, ...(version && { version }) } as Configured] });
  }

  async #put(kind: ResourceKind, name: string, spec: object): Promise<void> {
    const before = this.rig.all(kind).find(({ metadata }) => metadata.name === name);
    const { generation = 0 } = (before?.metadata ?? {}) as { generation?: number };
    const metadata = { ...before?.metadata, name, namespace: 'default', generation: generation + 1 };
    await this.rig.put(kind, { ...before, metadata, spec } as never);
  }

  async #rollBack(): Promise<void> {
    await this.#putModule({ rollbackTo: {} });
    for (let turn = 0; turn < QUIET_TURNS; turn++) await this.rig.rest();
    const { rollbackTo: _rollbackTo, ...spec } = (this.rig.all(MODULES)[0] as ModuleObject).spec;
    this.#module = spec;
    await this.#put(MODULES, 'shop-cart', spec);
  }

  async #deleteConfigMap(index: number): Promise<void> {
    const version = this.#config.status?.versions?.[index];
    if (version === undefined) return;
    this.#deleted.add(version.digest);
    const name = configMapNameOf('db', version.digest);
    if (this.#configMaps.some(({ metadata }) => metadata.name === name)) await this.rig.remove(CONFIG_MAPS, name);
  }

  /** The garbage collector takes its versions with it, at some time. */
  async #recreate(): Promise<void> {
    await this.rig.remove(MODULE_CONFIGS, 'db');
    this.#seen.clear();
    this.#deleted.clear();
    await this.#putConfig({ activeVersion: undefined });
  }

  async #restart(): Promise<void> {
    await this.rig.stop();
    this.rig = new PlatformRig(CATALOG, KNOWN, {}, this.rig);
    await this.rig.start();
  }
}

interface Workload extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
      readonly spec: { readonly containers: readonly { readonly args?: readonly string[] }[] };
    };
  };
}

function releaseOf(id: string): NonNullable<ModuleSpec['release']> {
  return { id, image: `https://jars.example.com/cart-${id.slice(1)}.0.0-ark-biz.jar` };
}

it('whatever happens, versions and Pods have the contents that they name, and then nothing is written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 1, maxLength: 12 }), async (happenings) => {
      const model = new Model();
      await model.start();
      try {
        for (const one of happenings) {
          await model.happen(one);
          await model.rest();
          model.check();
        }
        const { written } = model;
        await model.rest();
        expect(model.written).toEqual(written);
      } finally {
        await model.rig.stop();
      }
    }),
    { numRuns: runsOf(30) },
  );
}, 120_000);
