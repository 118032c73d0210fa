import { describe, expect, it } from 'vitest';
import { MessageOrder } from '../../../src/module/message-order.ts';
import { MAX_RECORDS, type ModuleLedger } from '../../../src/module/module-ledger.ts';
import type { ModuleStatus } from '../../../src/tunnel/module.ts';
import { idOf, makeLedger, makeList, makeResult, makeSpec } from '../../support/builders.ts';

const LIST_SIZE = 2_000;
const nobody = (): boolean => false;

/** A list of names that no other round has. */
function listOf(round: number, state = 'ACTIVATED'): ModuleStatus[] {
  return makeList(...Array.from({ length: LIST_SIZE }, (_, index) => `r${round}-${index}:1 ${state}`));
}

function sizeOf(ledger: ModuleLedger): number {
  return [...ledger.records()].length;
}

describe('the records of one base', () => {
  it('are at most 4,000, and a list beyond that is refused as a whole', () => {
    const ledger = makeLedger();
    expect(ledger.takeList(listOf(0), {}, 0)).toBe(true);
    expect(ledger.takeList(listOf(1), {}, 1)).toBe(true);
    const before = [...ledger.records()];
    ledger.listAsked(2);
    expect(ledger.takeList(listOf(2), {}, 2)).toBe(false);
    expect(ledger.isFull).toBe(true);
    expect([...ledger.records()]).toEqual(before);
    expect(before).toHaveLength(MAX_RECORDS);
  });

  it('have room for a list up to the last one, whatever of it is there already', () => {
    const ledger = makeLedger();
    ledger.takeList(listOf(0), {}, 0);
    const rest = (count: number) => Array.from({ length: count }, (_, index) => idOf(`new-${index}:1`));
    expect(ledger.hasRoomFor([...listOf(0), ...rest(2_000)])).toBe(true);
    expect(ledger.hasRoomFor([...listOf(0), ...rest(2_001)])).toBe(false);
    expect([ledger.hasRoomFor(rest(2_000)), ledger.hasRoomFor(rest(2_001))]).toEqual([true, false]);
  });

  it('keep what a refused list lacks and a Pod wants, also when it is refused again and again', () => {
    const ledger = makeLedger();
    ledger.takeList(listOf(0), {}, 0);
    ledger.takeList([...listOf(0).slice(1), { ...idOf('mine:1'), state: 'ACTIVATED' }], {}, 1);
    ledger.takeList([...listOf(1).slice(1), { ...idOf('mine:1'), state: 'ACTIVATED' }], {}, 2);
    for (const now of [10, 20, 30]) {
      ledger.listAsked(now);
      expect(ledger.takeList(listOf(now), {}, now)).toBe(false);
    }
    expect(ledger.get('mine:1')).toMatchObject({ state: 'ACTIVATED', missingSince: undefined, failure: undefined });
  });

  it('are no more after lists of ever new names that nobody asked for', () => {
    const ledger = makeLedger();
    for (let round = 0; round < 20; round++) {
      expect(ledger.takeList(listOf(round), {}, 1_000 * round)).toBe(true);
      ledger.forgetUnless(nobody);
      expect(sizeOf(ledger)).toBe(LIST_SIZE);
    }
  });

  it('make room for the next list, also where the modules are in work', () => {
    const ledger = makeLedger();
    for (let round = 0; round < 20; round++) {
      const list = listOf(round, 'RESOLVED');
      if (ledger.takeList(list, {}, 1_000 * round)) continue;
      expect(ledger.isFull).toBe(true);
      ledger.forgetUnless(nobody);
      expect(ledger.takeList(list, {}, 1_000 * round + 1)).toBe(true);
      expect(sizeOf(ledger)).toBeLessThanOrEqual(MAX_RECORDS);
    }
  });

  it('are not forgotten without a question where a Pod wants them, a command is sent or an install was ours', () => {
    const ledger = makeLedger();
    ledger.takeList(makeList('wanted:1', 'leaving:1', 'foreign:1'), {}, 0);
    ledger.installSent(makeSpec('ours:1'), 0);
    ledger.takeResult(makeResult('install', 'ours:1'), {}, 0);
    ledger.commandSent('uninstall', idOf('leaving:1'), 0);
    ledger.takeList([], {}, 1);
    ledger.forgetUnless((key) => key === 'wanted:1');
    expect([...ledger.records()].map(({ id }) => id.name).sort()).toEqual(['leaving', 'ours', 'wanted']);
    expect(ledger.get('wanted:1')).toMatchObject({ state: 'ACTIVATED', failure: undefined });
  });

  it('are changed once by a restart that a base reports over and over', () => {
    const ledger = makeLedger();
    ledger.takeList(makeList('a:1'), { publishedAt: 5 }, 0);
    ledger.baseRestarted(10);
    const record = ledger.get('a:1');
    ledger.baseRestarted(11);
    expect(ledger.get('a:1')).toBe(record);
    expect(ledger.takeList(makeList('a:1'), { publishedAt: 10 }, 1)).toBe(false);
    expect(ledger.takeList([], { publishedAt: 12 }, 2)).toBe(true);
    expect(ledger.get('a:1')?.failure?.reason).toBe('BaseRestarted');
  });
});

describe('the answers that are remembered', () => {
  /** Whether an answer is still known as old after so many others at the same time. */
  function isKnownAfter(count: number): boolean {
    const order = new MessageOrder();
    order.isOldResult('first:1', 'install', 5);
    for (let index = 0; index < count; index++) order.isOldResult(`other-${index}:1`, 'install', 5);
    return order.isOldResult('first:1', 'install', 5);
  }

  it('are at most 4,000, whatever time the base names', () => {
    expect(isKnownAfter(3_000)).toBe(true);
    expect(isKnownAfter(4_000)).toBe(false);
  });
});
