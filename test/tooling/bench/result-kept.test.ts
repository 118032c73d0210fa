import { describe, expect, it } from 'vitest';
import { isComplete, keptCaseOf, keptText, merged } from '../../bench/kept.ts';
import { resultOf } from '../../bench/result.ts';
import { caseRun } from './case-run.ts';
import { keptCase, keptFigure, keptSuite } from './kept-figures.ts';

const SUBJECTS = ['controller', 'floor'];
const MEASURED = { at: '2026-01-02T03:04:05.000Z', machine: '2 cores', runs: 1, sizes: { bases: 100 } };
const CASE = {
  name: 'rollout',
  subjects: SUBJECTS,
  figures: {
    ready: { text: 'until Ready', unit: 's', timesFloorAtMost: 2 },
    lost: { text: 'never came', unit: 's', atMost: 1 },
    read: { text: 'to be read', unit: 's' },
  },
};

describe('what is kept of a result', () => {
  const usage = [{ name: 'one', cpuSeconds: 1.23456, residentMib: 100 }];
  const runs = [
    caseRun({ subject: 'controller', values: { ready: 1.23456 }, usage, pauseMs: 7, details: { large: true } }),
    caseRun({ subject: 'floor', values: { ready: 12345.6 } }),
  ];
  const kept = keptCaseOf(resultOf(CASE, runs, SUBJECTS), MEASURED);

  it('has no details, processes or pauses, and four digits', () => {
    expect(kept.figures.map(({ key }) => key)).toEqual(['ready', 'lost', 'busiestCpu', 'largestMemory']);
    expect(kept.figures[0]).toMatchObject({ median: 1.235, values: [1.235], floor: { median: 12346 }, isKept: true });
    expect(Object.keys(kept).sort()).toEqual(['at', 'figures', 'machine', 'name', 'runs', 'sizes']);
  });

  it('has what is promised also when nobody could measure it', () => {
    expect(kept.figures[1]).toEqual({ key: 'lost', ...CASE.figures.lost, values: [], median: null });
  });

  it('has the peer, and all variants of which the best counts', () => {
    const subjects = ['controller', 'floor 4', 'floor 8', 'kwok'];
    const compared = ['controller', 'floor 4', 'floor 8', 'kwok'].map((subject, index) =>
      caseRun({ subject, values: { ready: 10.00001 - index } }),
    );
    const { figures, variants } = keptCaseOf(resultOf({ ...CASE, subjects }, compared, subjects), MEASURED);
    expect(figures[0]).toMatchObject({ floor: { values: [8] }, others: { kwok: { values: [7], median: 7 } } });
    expect(variants).toEqual({ key: 'ready', values: { 'floor 4': [9], 'floor 8': [8] } });
  });

  it('is read as it was written', () => {
    const endless = keptFigure('endless', null, { values: [1, null], isKept: false });
    const suite = keptSuite([kept, keptCase('other', [endless])]);
    expect(JSON.parse(keptText(suite))).toEqual(suite);
  });

  it('says that a value was none', () => {
    const run = caseRun({ subject: 'controller', values: { lost: Number.NaN, read: Infinity } });
    const { figures } = keptCaseOf(resultOf(CASE, [run], SUBJECTS), MEASURED);
    expect(figures.find(({ key }) => key === 'lost')).toMatchObject({ values: [null], median: null, isKept: false });
    expect(figures.find(({ key }) => key === 'read')).toMatchObject({ values: [null], median: null });
  });
});

describe('a case', () => {
  it('is complete with all runs of all its subjects', () => {
    const runs = [caseRun({ subject: 'controller' }), caseRun({ subject: 'floor' })];
    const failed = caseRun({ subject: 'floor', failure: 'no broker' });
    expect(isComplete(resultOf(CASE, runs, SUBJECTS), 1)).toBe(true);
    expect(isComplete(resultOf(CASE, runs, SUBJECTS), 2)).toBe(false);
    expect(isComplete(resultOf(CASE, [...runs.slice(0, 1), failed], SUBJECTS), 1)).toBe(false);
    expect(isComplete(resultOf(CASE, [], SUBJECTS), 1)).toBe(false);
  });

  it('that is not measured now keeps what it had; one that is no more goes', () => {
    const [a, b, gone] = ['a', 'b', 'gone'].map((name) => keptCase(name, []));
    const newer = keptCase('b', [], { at: '2026-05-06T00:00:00.000Z' });
    const former = [a, b, gone].filter((one) => one !== undefined);
    expect(merged(former, [newer], ['c', 'b', 'a'])).toEqual([newer, a]);
  });
});

describe('the file', () => {
  const linesWith = (values: readonly (number | null)[]): string[] => {
    return keptText(keptSuite([keptCase('a', [keptFigure('key', 1, { values })])])).split('\n');
  };

  it('has the values of a figure in one line', () => {
    expect(linesWith([1, null, 2.5])).toContain('          "values": [1, null, 2.5],');
    expect(linesWith([])).toContain('          "values": [],');
  });

  it('has as many of many in a line as the formatter of this repository allows', () => {
    const lines = linesWith(Array.from({ length: 40 }, () => 12345));
    const at = lines.indexOf('          "values": [');
    expect(lines[at + 1]).toBe(`            ${Array.from({ length: 15 }, () => '12345,').join(' ')}`);
    expect(lines[at + 3]).toBe(`            ${Array.from({ length: 10 }, () => '12345').join(', ')}`);
    expect(lines[at + 4]).toBe('          ],');
  });
});
