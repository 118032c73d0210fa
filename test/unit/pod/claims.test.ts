import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../src/module/module-record.ts';
import { claimsOf } from '../../../src/pod/claims.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { imageIdOf } from '../../../src/redact-url.ts';
import { makePod, makeRecord, makeSpec, runningStatus } from '../../support/builders.ts';

const KEY = 'biz1:1.0.0';
const OLD = '2026-01-01T00:00:00Z';
const NEW = '2026-01-02T00:00:00Z';
const active = makeRecord(KEY, { state: 'ACTIVATED' });
const ran = (url?: string) => ({
  phase: 'Running',
  containerStatuses: [runningStatus(KEY, url === undefined ? {} : { imageID: url })],
});

const claimOf = (living: VPod[], record = active, leaving: VPod[] = []) =>
  claimsOf({ living, others: () => leaving, recordOf: () => record, specsOf: moduleSpecsOf }).get(KEY);

describe('a module that several Pods ask for', () => {
  it('belongs to the oldest while nothing is installed', () => {
    const [a, b] = [makePod({ createdAt: OLD }), makePod({ createdAt: NEW, args: ['--x'] })];
    expect(claimOf([a, b], makeRecord(KEY))?.owner).toBe(a);
  });

  it('belongs to the one whose form is installed, also when it is younger', () => {
    const [a, b] = [makePod({ createdAt: OLD }), makePod({ createdAt: NEW, args: ['--x'] })];
    const record = { ...active, fingerprint: fingerprintOf(makeSpec(KEY, { args: ['--x'] })) };
    expect(claimOf([a, b], record)).toMatchObject({ owner: b, isReplacement: false });
  });

  it('belongs to the one whose form is being installed', () => {
    const [a, b] = [makePod(), makePod({ args: ['--x'] })];
    const fingerprint = fingerprintOf(makeSpec(KEY, { args: ['--x'] }));
    const inFlight = {
      command: 'install' as const,
      sentAt: 0,
      deadlineAt: 1,
      uncertain: false,
      isBusy: false,
      fingerprint,
      isReplacing: false,
    };
    expect(claimOf([a, b], makeRecord(KEY, { inFlight }))?.owner).toBe(b);
  });

  it('belongs, after a restart of the controller, to the one whose own status runs it', () => {
    const [a, b] = [makePod({ args: ['--other'] }), makePod({ args: ['--x'], status: ran() })];
    expect(claimOf([a, b])).toMatchObject({ owner: b, isReplacement: false });
  });

  it('is as new as the youngest of them, also one that waits because it has other args', () => {
    const [a, b] = [makePod({ createdAt: OLD }), makePod({ createdAt: NEW, args: ['--x'] })];
    const record = { ...active, fingerprint: fingerprintOf(makeSpec(KEY)) };
    expect(claimOf([a, b], record)).toMatchObject({ owner: a, youngest: b });
  });

  it('is adopted after a restart although nobody’s status speaks of it', () => {
    expect(claimOf([makePod()])).toMatchObject({ isReplacement: false });
  });
});

describe('a module whose URL has secrets', () => {
  const url = (query: string, userinfo = 'user:one') => `https://${userinfo}@repo/biz1.jar?${query}`;

  it.each([
    ['as this version shows it', imageIdOf(url('v=1'))],
    ['as an earlier version wrote it', url('v=1')],
    ['with the password of before', url('v=1', 'user:two')],
  ])('is adopted after a restart of the controller: %s', (_, imageID) => {
    const pod = makePod({ url: url('v=1'), status: ran(imageID) });
    expect(claimOf([pod])).toMatchObject({ owner: pod, isReplacement: false });
  });

  it('is replaced when the query was changed while the controller was away', () => {
    const pod = makePod({ url: url('v=2'), status: ran(imageIdOf(url('v=1'))) });
    expect(claimOf([pod])?.isReplacement).toBe(true);
  });
});

describe('a module that is on the base in another form', () => {
  it('is replaced when its Pod’s image was changed', () => {
    const changed = makePod({ url: 'file:///new.jar' });
    const record = { ...active, fingerprint: fingerprintOf(makeSpec(KEY)) };
    expect(claimOf([changed], record)?.isReplacement).toBe(true);
  });

  it('is replaced when the image was changed while the controller was away', () => {
    expect(claimOf([makePod({ url: 'file:///new.jar', status: ran('file:///old.jar') })])?.isReplacement).toBe(true);
  });

  it('is still replaced once the container is shown as waiting for that', () => {
    const waiting = runningStatus(KEY, {
      imageID: 'file:///old.jar',
      ready: false,
      state: { waiting: { reason: 'x' } },
    });
    const status = { phase: 'Running', containerStatuses: [waiting] };
    expect(claimOf([makePod({ url: 'file:///new.jar', status })])?.isReplacement).toBe(true);
  });

  it('is replaced when a leaving Pod ran it with another image', () => {
    const leaving = makePod({ url: 'file:///old.jar', deleting: true, status: ran('file:///old.jar') });
    expect(claimOf([makePod({ url: 'file:///new.jar' })], active, [leaving])?.isReplacement).toBe(true);
  });

  it('is no replacement when nothing is there any more', () => {
    const record = makeRecord(KEY, { fingerprint: 'other' });
    expect(claimOf([makePod()], record)?.isReplacement).toBe(false);
  });
});

it('leaving Pods claim nothing', () => {
  const others = (): VPod[] => [makePod({ deleting: true, status: ran() })];
  expect(claimsOf({ living: [], others, recordOf: () => active, specsOf: moduleSpecsOf }).size).toBe(0);
});
