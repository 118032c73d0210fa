import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LossWrites } from '../../../src/pod/status-writer.ts';
import type { VPodStatus } from '../../../src/pod/vpod.ts';
import { inWriteOrder, type StatusChange } from '../../../src/pod/write-order.ts';
import { makePod } from '../../support/builders.ts';

const statusOf = (isReady: boolean): VPodStatus => ({
  ...makePod().status,
  conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
});

type Turn = 'gain' | 'loss' | 'stays ready' | 'stays unready';
const READY_BEFORE: readonly Turn[] = ['loss', 'stays ready'];
const READY_AFTER: readonly Turn[] = ['gain', 'stays ready'];

/** `gain biz1:2`: what becomes of the Ready condition of a Pod with these modules. */
function change(turn: Turn, ...modules: string[]): StatusChange & { words: string } {
  const pod = { ...makePod({ modules }), status: statusOf(READY_BEFORE.includes(turn)) };
  return { pod, next: statusOf(READY_AFTER.includes(turn)), words: [turn, ...modules].join(' ') };
}

/** A Pod that stops being ready since another namespace owns the name of its module. */
function lostName(name: string): Worded {
  const { next, ...rest } = change('loss', `${name}:1`);
  const waiting = { name, image: '', imageID: '', ready: false, restartCount: 0 };
  const containerStatuses = [{ ...waiting, state: { waiting: { reason: 'ModuleNameTaken' } } }];
  return { ...rest, next: { ...next, containerStatuses } };
}

type Worded = StatusChange & { words: string };

/** Whether `change` becomes Ready with a module that `other` loses. */
function mustFollow(change: Worded, other: Worded): boolean {
  const namesOf = ({ words }: Worded): string[] => [...words.matchAll(/(\w+):/g)].map(([, name = '']) => name);
  const isPair = change.words.startsWith('gain') && other.words.startsWith('loss');
  return isPair && namesOf(change).some((name) => namesOf(other).includes(name));
}

const ordered = (...changes: (StatusChange & { words: string })[]): string[] =>
  inWriteOrder(changes).map(({ words }) => words);

describe('statuses of one base are written', () => {
  it('oldest first', () => {
    expect(ordered(change('gain', 'a:1'), change('loss', 'b:1'), change('gain', 'c:1'))).toEqual([
      'gain a:1',
      'loss b:1',
      'gain c:1',
    ]);
  });

  it('a loss first where an older Pod becomes ready with the same module', () => {
    expect(ordered(change('gain', 'a:1'), change('gain', 'b:1'), change('loss', 'a:2'))).toEqual([
      'loss a:2',
      'gain a:1',
      'gain b:1',
    ]);
  });

  it('with all losses before a gain that shares with several', () => {
    const changes = [
      change('gain', 'a:1', 'b:1'),
      change('loss', 'b:2'),
      change('stays ready', 'c:1'),
      change('loss', 'a:2'),
    ];
    expect(ordered(...changes)).toEqual(['loss b:2', 'loss a:2', 'gain a:1 b:1', 'stays ready c:1']);
  });
});

describe('a Pod that becomes ready', () => {
  it.each<[string, boolean, StatusChange, StatusChange]>([
    ['waits for one that could not be written as not ready', true, change('gain', 'a:2'), change('loss', 'a:1')],
    ['does not wait for one with other modules', false, change('gain', 'a:2'), change('loss', 'b:1')],
    ['does not wait for one that stays as it is', false, change('gain', 'a:2'), change('stays ready', 'a:1')],
    [
      'does not wait for one whose module name belongs to another namespace',
      false,
      change('gain', 'a:2'),
      lostName('a'),
    ],
    ['does not wait for another one that becomes ready', false, change('gain', 'a:2'), change('gain', 'a:1')],
  ])('%s', async (_, isHeld, gain, other) => {
    const writes = new LossWrites();
    writes.begin(other, Promise.resolve(false));
    expect(await writes.before(gain)).toBe(!isHeld);
  });

  it('waits for all that lose a module of the name, and for each name', async () => {
    const writes = new LossWrites();
    writes.begin(change('loss', 'a:1'), Promise.resolve(true));
    expect(await writes.before(change('gain', 'a:3', 'b:3'))).toBe(true);
    writes.begin(change('loss', 'b:1'), Promise.resolve(false));
    writes.begin(change('loss', 'b:2'), Promise.resolve(true));
    expect(await writes.before(change('gain', 'a:3', 'b:3'))).toBe(false);
    expect(await writes.before(change('gain', 'a:3'))).toBe(true);
  });

  it('is the only one that ever waits', async () => {
    const writes = new LossWrites();
    writes.begin(change('loss', 'a:1'), Promise.resolve(false));
    expect(await writes.before(change('loss', 'a:2'))).toBe(true);
    expect(await writes.before(change('stays unready', 'a:2'))).toBe(true);
  });
});

describe('whatever changes', () => {
  const turn = fc.constantFrom<Turn>('gain', 'loss', 'stays ready', 'stays unready');
  const modules = fc.uniqueArray(fc.constantFrom('a:1', 'b:1', 'c:1'), { minLength: 1 });
  const changes = fc.array(
    fc.tuple(turn, modules).map(([each, keys]) => change(each, ...keys)),
    { maxLength: 8 },
  );

  it('each is written once, and no Pod becomes ready before the one that loses the module', () => {
    fc.assert(
      fc.property(changes, (all) => {
        const order = inWriteOrder(all);
        expect(new Set(order)).toEqual(new Set(all));
        expect(order).toHaveLength(all.length);
        order.forEach((first, index) => {
          for (const later of order.slice(index + 1)) expect(mustFollow(first, later)).toBe(false);
        });
      }),
    );
  });

  it('Pods that nothing ties stay in order of age', () => {
    fc.assert(
      fc.property(changes, (all) => {
        const order = inWriteOrder(all).filter(({ words }) => !words.startsWith('loss'));
        expect(order).toEqual(all.filter(({ words }) => !words.startsWith('loss')));
      }),
    );
  });
});
