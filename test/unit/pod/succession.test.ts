import { describe, expect, it } from 'vitest';
import type { ModuleRecord } from '../../../src/module/module-record.ts';
import { claimsOf } from '../../../src/pod/claims.ts';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import { type Succession, Successions } from '../../../src/pod/succession.ts';
import { makePod, makeRecord, type PodOptions, runningStatus } from '../../support/builders.ts';

const DAY = (day: number): string => `2026-01-0${day}T00:00:00Z`;
const ran = (key: string) => ({ phase: 'Running', containerStatuses: [runningStatus(key)] });

/** What the versions `biz1:…` of these Pods mean for each other; `has`: what the base has of them. */
function successionsOf(...world: Parameters<typeof successionOf>) {
  const of = successionOf(...world);
  return (key: string): string => wordsOf(of(key));
}

function successionOf(pods: readonly PodOptions[], has: Readonly<Record<string, Partial<ModuleRecord>>>) {
  const records = new Map(Object.entries(has).map(([key, more]) => [key, makeRecord(key, more)]));
  const recordOf = (key: string): ModuleRecord | undefined => records.get(key);
  const living = pods.map(makePod);
  const claims = claimsOf({ living, others: () => [], recordOf, specsOf: moduleSpecsOf });
  const successions = new Successions(claims, recordOf, () => true);
  return (key: string): Succession => successions.of(key);
}

function wordsOf({ successor, replacer, isNewest }: Succession): string {
  const words = [isNewest ? 'newest' : 'older'];
  if (successor) words.push(`after it ${successor.spec.version}`);
  if (replacer) words.push(`replaced by ${replacer.claim.spec.version}`);
  return words.join(', ');
}

const version = (number: number, more: PodOptions = {}): PodOptions => {
  return { modules: [`biz1:${number}`], createdAt: DAY(number), uid: `u${number}`, ...more };
};
const ACTIVE = { state: 'ACTIVATED' } as const;
const INACTIVE = { state: 'DEACTIVATED' } as const;
const UNINSTALL = {
  command: 'uninstall',
  sentAt: 0,
  deadlineAt: 1,
  uncertain: false,
  isBusy: false,
  fingerprint: undefined,
  isReplacing: false,
} as const;
const STRATEGY = { strategy: 'uninstallThenInstall' };

describe('among the versions of a name', () => {
  it('one alone is the newest, whatever other modules there are', () => {
    const of = successionsOf([version(1), { modules: ['biz2:9'], createdAt: DAY(9) }], { 'biz2:9': ACTIVE });
    expect(of('biz1:1')).toBe('newest');
  });

  it('the youngest Pod’s is the newest, and the successor once it is active', () => {
    const of = successionsOf([version(1), version(2)], { 'biz1:1': INACTIVE, 'biz1:2': ACTIVE });
    expect([of('biz1:1'), of('biz1:2')]).toEqual(['older, after it 2', 'newest']);
  });

  it('the youngest of two active ones has taken over', () => {
    const of = successionsOf([version(1), version(2), version(3)], {
      'biz1:1': INACTIVE,
      'biz1:2': ACTIVE,
      'biz1:3': ACTIVE,
    });
    expect(of('biz1:1')).toBe('older, after it 3');
  });

  it.each<[string, Partial<ModuleRecord>, string]>([
    ['is not here', {}, 'newest'],
    ['has failed', { failure: { reason: 'ErrImagePull', message: '' } }, 'newest'],
    ['is broken', { state: 'BROKEN' }, 'newest'],
    ['is in work', { state: 'RESOLVED' }, 'older'],
    ['is here', INACTIVE, 'older'],
  ])('a younger one counts when it is here or comes: it %s', (_, record, words) => {
    const of = successionsOf([version(1), version(2)], { 'biz1:1': INACTIVE, 'biz1:2': record });
    expect(of('biz1:1')).toBe(words);
  });

  it.each<[string, Partial<ModuleRecord>, string | undefined]>([
    ['is in work', { state: 'RESOLVED' }, 'biz1:1'],
    ['is uninstalled for an earlier Pod', { state: 'DEACTIVATED', inFlight: UNINSTALL }, 'biz1:1'],
    ['is active', ACTIVE, undefined],
    ['can take over', INACTIVE, 'biz1:2'],
  ])('the next one takes over while a younger one cannot: it %s', (_, record, next) => {
    const of = successionOf([version(1), version(2)], { 'biz1:1': INACTIVE, 'biz1:2': record });
    expect(['biz1:1', 'biz1:2'].find((key) => of(key).isNext)).toBe(next);
  });

  it('of three the middle one is the newest while the youngest is not here', () => {
    const of = successionsOf([version(1), version(2), version(3)], { 'biz1:1': ACTIVE, 'biz1:2': INACTIVE });
    expect([of('biz1:1'), of('biz1:2'), of('biz1:3')]).toEqual(['older', 'newest', 'newest']);
  });

  it('a Pod that shares a version makes it as young as it is', () => {
    const again = version(1, { createdAt: DAY(3), uid: 'u3' });
    const of = successionsOf([version(1), version(2), again], { 'biz1:1': INACTIVE, 'biz1:2': ACTIVE });
    expect(of('biz1:1')).toBe('newest');
  });
});

describe('a version whose Pod replaces the others', () => {
  it('replaces older ones, before it is here', () => {
    const of = successionsOf([version(1), version(2, STRATEGY)], { 'biz1:1': ACTIVE });
    expect([of('biz1:1'), of('biz1:2')]).toEqual(['newest, replaced by 2', 'newest']);
  });

  it('does not replace a younger one', () => {
    const of = successionsOf([version(1, STRATEGY), version(2)], { 'biz1:1': ACTIVE });
    expect(of('biz1:2')).not.toContain('replaced');
  });

  it('that is the youngest of several is the one that replaces', () => {
    const of = successionsOf([version(1), version(2, STRATEGY), version(3, STRATEGY)], {});
    expect([of('biz1:1'), of('biz1:2'), of('biz1:3')]).toEqual([
      'newest, replaced by 3',
      'newest, replaced by 3',
      'newest',
    ]);
  });
});

describe('of two versions of one second', () => {
  const pair = (first: PodOptions, second: PodOptions): PodOptions[] => [
    version(1, { ...first, createdAt: DAY(1) }),
    version(2, { ...second, createdAt: DAY(1) }),
  ];
  const STATES = [undefined, 'ACTIVATED', 'DEACTIVATED'] as const;
  const worlds = STATES.flatMap((a) => STATES.flatMap((b) => (a === 'ACTIVATED' && b === a ? [] : [[a, b] as const])));

  it.each(worlds)('exactly one replaces the other when both ask for it, whoever has run (%s, %s)', (a, b) => {
    for (const first of [STRATEGY, { ...STRATEGY, status: ran('biz1:1') }]) {
      for (const second of [STRATEGY, { ...STRATEGY, status: ran('biz1:2') }]) {
        const of = successionsOf(pair(first, second), { 'biz1:1': { state: a }, 'biz1:2': { state: b } });
        const replaced = ['biz1:1', 'biz1:2'].filter((key) => of(key).includes('replaced'));
        expect(replaced).toHaveLength(1);
      }
    }
  });

  it('the one whose Pod asks for it replaces the other, whichever is active', () => {
    const of = successionsOf(pair({}, STRATEGY), { 'biz1:1': ACTIVE });
    expect(of('biz1:1')).toContain('replaced by 2');
  });

  it('the one that has run is the older', () => {
    const of = successionsOf(pair({}, { status: ran('biz1:2') }), { 'biz1:1': INACTIVE, 'biz1:2': ACTIVE });
    expect(of('biz1:1')).toBe('newest');
    expect(of('biz1:2')).toBe('older');
  });

  it.each(['a', 'z'])('the active one stays so when both have run (UID %s)', (uid) => {
    const pods = pair({ status: ran('biz1:1'), uid }, { status: ran('biz1:2') });
    const of = successionsOf(pods, { 'biz1:1': INACTIVE, 'biz1:2': ACTIVE });
    expect(of('biz1:1')).toContain('older');
  });
});
