import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { type Crd, type CrdInstallerOptions, installCrd, SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import { silentLogger } from '../../src/logger.ts';

export type CrdClient = CrdInstallerOptions['client'];

export interface CrdWorld {
  /** What it writes belongs to `manager`. */
  clientOf(manager: string): CrdClient;
  readonly clock: Clock;
}

interface CrdParts {
  readonly name: string;
  /** Without: as somebody else has written it. */
  readonly schema?: number;
  /** The last one is stored. */
  readonly versions?: readonly string[];
  readonly kind?: string;
}

const GROUP = 'contract.example.com';
const HELM = 'helm';

/** A CRD whose schema differs with its number. */
export function crdOf({ name, schema, versions = ['v1'], kind = `Kind${name}` }: CrdParts): Crd {
  const annotations = schema === undefined ? {} : { [SCHEMA_ANNOTATION]: String(schema) };
  const spec = { type: 'object', properties: { [`field${schema ?? 0}`]: { type: 'string' } } };
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  return {
    metadata: { name: `${name}.${GROUP}`, annotations },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { kind, plural: name },
      versions: versions.map((version, index) => ({
        name: version,
        served: true,
        storage: index === versions.length - 1,
        schema: { openAPIV3Schema },
      })),
    },
  };
}

/** How CRDs are installed where others install them too. Each test has a CRD of its own. */
export function describeCrdInstalls(name: string, world: () => CrdWorld): void {
  const ours = (): CrdClient => world().clientOf('module-controller');

  const install = (crd: Crd, client = ours()) =>
    installCrd(crd, { client, clock: world().clock, logger: silentLogger });

  /** The number and the versions of the schema that is in force. */
  const inForce = async (crd: string): Promise<readonly unknown[]> => {
    const { metadata, spec } = await ours().get({ name: `${crd}.${GROUP}` });
    return [metadata.annotations?.[SCHEMA_ANNOTATION], spec.versions.map((version) => version.name)];
  };

  describe(`CRDs in ${name}`, () => {
    it('are installed, upgraded, and left alone when they are current', async () => {
      const crd = { name: 'current' };
      expect(await install(crdOf({ ...crd, schema: 1 }))).toBe('Installed');
      expect(await install(crdOf({ ...crd, schema: 1 }))).toBe('Current');
      expect(await install(crdOf({ ...crd, schema: 2, versions: ['v1', 'v2'] }))).toBe('Installed');
      expect(await inForce('current')).toEqual(['2', ['v1', 'v2']]);
    });

    it('are not downgraded', async () => {
      await install(crdOf({ name: 'newer', schema: 3 }));
      expect(await install(crdOf({ name: 'newer', schema: 2 }))).toBe('Newer');
      expect(await inForce('newer')).toEqual(['3', ['v1']]);
    });

    it('stay as they are when somebody else has installed them', async () => {
      await world()
        .clientOf(HELM)
        .apply({ ...crdOf({ name: 'foreign' }) });
      expect(await install(crdOf({ name: 'foreign', schema: 2, versions: ['v1', 'v2'] }))).toBe('Foreign');
      expect(await inForce('foreign')).toEqual([undefined, ['v1']]);
    });

    it('stay as they are when a chart with our schema number owns them', async () => {
      await world()
        .clientOf(HELM)
        .apply({ ...crdOf({ name: 'charts', schema: 1 }) });
      expect(await install(crdOf({ name: 'charts', schema: 2, versions: ['v1', 'v2'] }))).toBe('Foreign');
      expect(await inForce('charts')).toEqual(['1', ['v1']]);
    });

    it('stay as they are when somebody has changed ours', async () => {
      await install(crdOf({ name: 'changed', schema: 1 }));
      const byHand = crdOf({ name: 'changed', schema: 1, versions: ['v0', 'v1'] });
      await world()
        .clientOf('kubectl')
        .apply({ ...byHand }, { isForced: true });
      expect(await install(crdOf({ name: 'changed', schema: 2 }))).toBe('Foreign');
      expect(await inForce('changed')).toEqual(['1', ['v0', 'v1']]);
    });

    it('keep a version in which objects may be stored', async () => {
      await install(crdOf({ name: 'lost', schema: 1 }));
      await install(crdOf({ name: 'lost', schema: 2, versions: ['v1', 'v2'] }));
      await expect(install(crdOf({ name: 'lost', schema: 3, versions: ['v2'] }))).rejects.toMatchObject({
        code: 'Kube.CrdUnusable',
        message: expect.stringContaining('objects may be stored as v1, which the new CRD no longer has'),
      });
      expect(await inForce('lost')).toEqual(['2', ['v1', 'v2']]);
    });

    it('do not lose such a version by any write', async () => {
      await install(crdOf({ name: 'kept', schema: 1 }));
      const refused = ours().apply({ ...crdOf({ name: 'kept', schema: 2, versions: ['v2'] }) });
      await expect(refused).rejects.toMatchObject({ status: 422, reason: 'Invalid' });
    });

    it('are an error when another CRD has the names', async () => {
      await install(crdOf({ name: 'firsts', schema: 1, kind: 'Taken' }));
      await expect(install(crdOf({ name: 'seconds', schema: 1, kind: 'Taken' }))).rejects.toThrow(
        /its names are taken: .* is already in use/,
      );
    });

    it.each([
      ['an older process saw none and installs its own', 1, 'Installed', '2'],
      ['a newer process upgrades them', 3, 'Newer', '3'],
    ])('end as the newest when %s a moment later', async (_text, other, result, schema) => {
      const client = ours();
      let isFirst = true;
      const overtaken: CrdClient = {
        get: (ref) => client.get(ref),
        apply: async (crd) => {
          const answer = await client.apply(crd);
          if (isFirst) await client.apply({ ...crdOf({ name: `raced${other}`, schema: other }) });
          isFirst = false;
          return answer;
        },
      };
      expect(await install(crdOf({ name: `raced${other}`, schema: 2 }), overtaken)).toBe(result);
      expect(await inForce(`raced${other}`)).toEqual([schema, ['v1']]);
    });

    it('are not downgraded when a newer process upgrades them between the read and the write', async () => {
      const client = ours();
      await install(crdOf({ name: 'passed', schema: 1 }));
      let isFirst = true;
      const passed: CrdClient = {
        apply: (crd) => client.apply(crd),
        get: async (ref) => {
          const before = await client.get(ref);
          if (isFirst) await client.apply({ ...crdOf({ name: 'passed', schema: 3, versions: ['v1', 'v3'] }) });
          isFirst = false;
          return before;
        },
      };
      expect(await install(crdOf({ name: 'passed', schema: 2, versions: ['v1', 'v2'] }), passed)).toBe('Newer');
      expect(await inForce('passed')).toEqual(['3', ['v1', 'v3']]);
    });
  });
}
