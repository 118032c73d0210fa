import { beforeEach, describe, expect, it } from 'vitest';
import type { Timer } from '../../../src/clock.ts';
import { type Crd, installCrd } from '../../../src/kube/crds.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../src/logger.ts';
import { crdOf, describeCrdInstalls } from '../../contract/crds.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { FakeCrds } from '../../support/fake-crds.ts';

/** Time passes as soon as somebody waits for it. */
class HastyClock extends FakeClock {
  override setTimer(callback: () => void, delayMs: number): Timer {
    setImmediate(() => this.advance(delayMs));
    return super.setTimer(callback, delayMs);
  }
}

const inMemory = new FakeCrds();
describeCrdInstalls('memory', () => ({ clientOf: (manager) => inMemory.clientOf(manager), clock: new HastyClock() }));

const CRD = crdOf({ name: 'things', schema: 3 });

let crds: FakeCrds;
let clock: FakeClock;

beforeEach(() => {
  [crds, clock] = [new FakeCrds(), new FakeClock()];
});

const install = (crd: Crd, signal?: AbortSignal) =>
  installCrd(crd, { client: crds.clientOf('module-controller'), clock, logger: silentLogger }, signal);

async function installed(crd = CRD): Promise<void> {
  const result = install(crd);
  await clock.advanceAsync(50);
  expect(await result).toBe('Installed');
}

describe('the wait for a CRD', () => {
  it('ends when the API server serves it, and asks ever less often', async () => {
    crds.readsUntilServed = 3;
    const installed = install(CRD);
    await clock.advanceAsync(50 + 100 + 200 + 399);
    expect(crds.reads).toBe(3);
    await clock.advanceAsync(1);
    expect(await installed).toBe('Installed');
  });

  it('ends with an error after 30 s', async () => {
    crds.readsUntilServed = Number.POSITIVE_INFINITY;
    const failed = expect(install(CRD)).rejects.toThrow('the API server does not serve it');
    await clock.advanceAsync(32_000);
    await failed;
  });

  it('ends with an error after 30 s of writes that somebody else is faster with', async () => {
    const client = crds.clientOf('module-controller');
    await client.apply({ ...crdOf({ name: 'things', schema: 1 }) });
    const apply = (): Promise<Crd> => Promise.reject(new ApiError('stale', { status: 409, reason: 'Conflict' }));
    const installing = installCrd(CRD, { client: { ...client, apply }, clock, logger: silentLogger });
    const failed = expect(installing).rejects.toThrow('other clients keep changing it');
    await clock.advanceAsync(32_000);
    await failed;
  });

  it('ends when it is aborted', async () => {
    crds.readsUntilServed = Number.POSITIVE_INFINITY;
    const stopping = new AbortController();
    const failed = expect(install(CRD, stopping.signal)).rejects.toThrow(/abort/i);
    await settle();
    stopping.abort();
    await failed;
  });

  it('includes the end of a deletion, which also takes a version that the CRD no longer has', async () => {
    await installed(crdOf({ name: 'things', schema: 2, versions: ['v0'] }));
    crds.beginDeletion(CRD.metadata.name);
    const again = install(CRD);
    await clock.advanceAsync(5_000);
    crds.endDeletion(CRD.metadata.name);
    await clock.advanceAsync(3_000);
    expect(await again).toBe('Installed');
  });

  it('ends with an error when the deletion does not', async () => {
    await installed();
    crds.beginDeletion(CRD.metadata.name);
    const failed = expect(install(CRD)).rejects.toThrow('it is being deleted');
    await clock.advanceAsync(32_000);
    await failed;
  });
});

it('refuses a CRD without a schema number, which could not be upgraded', async () => {
  await expect(install(crdOf({ name: 'things' }))).rejects.toThrow(RangeError);
  expect(crds.reads).toBe(0);
});
