import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/kube/api-error.ts';
import { type Crd, installCrd, SCHEMA_ANNOTATION } from '../../../src/kube/crds.ts';
import type { Condition } from '../../../src/kube/objects.ts';
import { silentLogger } from '../../../src/logger.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const NAME = 'things.example.com';
const ESTABLISHED: Condition = { type: 'Established', status: 'True' };

function crdOf(schema: string | undefined, versions: readonly string[] = ['v1'], more: Partial<Crd> = {}): Crd {
  return {
    metadata: { name: NAME, ...(schema !== undefined && { annotations: { [SCHEMA_ANNOTATION]: schema } }) },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { kind: 'Thing', plural: 'things' },
      versions: versions.map((name) => ({ name, served: true, storage: true })),
    },
    ...more,
  };
}

/** One CRD in an API server that establishes it after some looks. */
class CrdServer {
  stored: Crd | undefined;
  conditions: readonly Condition[] = [ESTABLISHED];
  applied = 0;
  looks = 0;
  /** How many looks it takes until the conditions are there. */
  delay = 0;
  applyError: Error | undefined;

  get = async (): Promise<Crd> => {
    if (this.stored === undefined) throw new ApiError('no', { status: 404, reason: 'NotFound' });
    this.looks += 1;
    const conditions = this.looks > this.delay ? this.conditions : [];
    return { ...this.stored, status: { ...this.stored.status, conditions } };
  };

  apply = async (crd: unknown): Promise<Crd> => {
    if (this.applyError) throw this.applyError;
    this.applied += 1;
    this.stored = crd as Crd;
    return this.stored;
  };
}

let server: CrdServer;
let clock: FakeClock;

beforeEach(() => {
  server = new CrdServer();
  clock = new FakeClock();
});

const install = (crd: Crd, signal?: AbortSignal) =>
  installCrd(crd, { client: server, clock, logger: silentLogger }, signal);

describe('a CRD', () => {
  it('is installed where there is none, and current from then on', async () => {
    expect(await install(crdOf('3'))).toBe('Installed');
    expect(await install(crdOf('3'))).toBe('Current');
    expect(server.applied).toBe(1);
  });

  it.each([
    ['an older one is upgraded', '2', 'Installed', 1],
    ['a newer one stays', '4', 'Newer', 0],
    ['one of somebody else stays', undefined, 'Foreign', 0],
    ['one with a schema that is no number stays', 'x', 'Foreign', 0],
  ] as const)('%s', async (_text, schema, result, applied) => {
    server.stored = crdOf(schema);
    expect(await install(crdOf('3'))).toBe(result);
    expect(server.applied).toBe(applied);
  });

  it('stays when another manager owns its fields', async () => {
    server.stored = crdOf('2');
    server.applyError = new ApiError('conflict', { status: 409, reason: 'Conflict' });
    expect(await install(crdOf('3'))).toBe('Foreign');
  });

  it('is not upgraded while objects may be stored in a version that it loses', async () => {
    server.stored = crdOf('2', ['v1alpha1'], { status: { storedVersions: ['v1alpha1', 'v1'] } });
    await expect(install(crdOf('3'))).rejects.toMatchObject({
      code: 'Kube.CrdUnusable',
      message: `CustomResourceDefinition ${NAME}: objects may be stored as v1alpha1, which the new CRD no longer has`,
    });
    expect(server.applied).toBe(0);
  });

  it('whose names are taken is an error', async () => {
    server.conditions = [
      { type: 'NamesAccepted', status: 'False', reason: 'PluralConflict', message: '"things" is taken' },
    ];
    await expect(install(crdOf('3'))).rejects.toThrow('its names are taken: "things" is taken');
  });
});

describe('the wait for a CRD', () => {
  it('ends when the API server serves it, and asks ever less often', async () => {
    server.delay = 3;
    const installed = install(crdOf('3'));
    await clock.advanceAsync(50 + 100 + 199);
    await settle();
    expect(server.looks).toBe(3);
    await clock.advanceAsync(1);
    expect(await installed).toBe('Installed');
  });

  it('ends with an error after 30 s', async () => {
    server.delay = Number.POSITIVE_INFINITY;
    const failed = expect(install(crdOf('3'))).rejects.toThrow('the API server does not serve it');
    await clock.advanceAsync(32_000);
    await failed;
  });

  it('ends when it is aborted', async () => {
    server.delay = Number.POSITIVE_INFINITY;
    const stopping = new AbortController();
    const failed = expect(install(crdOf('3'), stopping.signal)).rejects.toThrow(/abort/i);
    await settle();
    stopping.abort();
    await failed;
  });
});
