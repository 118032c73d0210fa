import { describe, expect, it } from 'vitest';
import { RecordTable } from '../../../src/module/record-table.ts';
import { idOf, makeRecord } from '../../support/builders.ts';

const IN_FLIGHT = {
  command: 'install',
  sentAt: 0,
  deadlineAt: 1,
  uncertain: false,
  isBusy: false,
  fingerprint: undefined,
  isReplacing: false,
} as const;

function tableOf(...keys: readonly string[]): RecordTable {
  const table = new RecordTable();
  for (const key of keys) table.set(makeRecord(key));
  return table;
}

/** The versions beside `key`. */
function siblings(table: RecordTable, key: string): string[] {
  return table.siblingsOf(idOf(key)).map(({ id }) => id.version);
}

describe('the records of a base', () => {
  it('are found by key, and by the other versions of a name', () => {
    const table = tableOf('a:1', 'a:2', 'b:1');
    table.set(makeRecord('a:2', { state: 'ACTIVATED' }));
    expect([table.size, table.get('a:2')?.state, [...table.values()].length]).toEqual([3, 'ACTIVATED', 3]);
    expect([siblings(table, 'a:1'), siblings(table, 'a:3'), siblings(table, 'b:1'), siblings(table, 'c:1')]).toEqual([
      ['2'],
      ['1', '2'],
      [],
      [],
    ]);
  });

  it('that are forgotten leave the other versions of their name', () => {
    const table = tableOf('a:1', 'a:2', 'a:3', 'b:1');
    table.forget((key) => key === 'a:2');
    expect([table.get('a:2'), table.size, siblings(table, 'a:2')]).toEqual([undefined, 3, ['1', '3']]);
    table.forget((key) => key === 'a:3');
    expect(siblings(table, 'a:2')).toEqual(['1']);
    table.forget((_, { id }) => id.name === 'a');
    expect([siblings(table, 'a:2'), table.size]).toEqual([[], 1]);
    table.set(makeRecord('a:4'));
    expect(siblings(table, 'a:2')).toEqual(['4']);
  });

  it('have a command under way until it ends, or they are forgotten', () => {
    const table = tableOf('a:1');
    for (const key of ['a:1', 'a:2']) table.set(makeRecord(key, { inFlight: IN_FLIGHT }));
    expect([table.inFlightCount, table.inFlight().map(({ id }) => id.version)]).toEqual([2, ['1', '2']]);
    table.set(makeRecord('a:1'));
    expect([table.inFlightCount, table.inFlight().map(({ id }) => id.version)]).toEqual([1, ['2']]);
    table.forget(() => true);
    expect([table.inFlightCount, table.inFlight()]).toEqual([0, []]);
  });
});
