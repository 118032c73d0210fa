import { describe, expect, it } from 'vitest';
import { changesSince } from '../../bench/compare.ts';
import type { KeptFigure } from '../../bench/kept.ts';
import type { Sizes } from '../../bench/suite.ts';
import { keptCase, keptFigure } from './kept-figures.ts';

function changes(before: KeptFigure, now: KeptFigure): string[] {
  return changesSince([keptCase('kill', [before])], [keptCase('kill', [now])]);
}

const series = (median: number) => ({ values: [median], median });

describe('the change against the result that was kept', () => {
  it.each([
    [10, 12, '10 s → 12 s (+20 %, worse)'],
    [10, 8.8, '10 s → 8.8 s (-12 %, better)'],
    [0, 2, '0 s → 2 s (worse)'],
    [2, 0, '2 s → 0 s (-100 %, better)'],
    [2, null, '2 s → - (worse)'],
    [null, 2, '- → 2 s (better)'],
  ])('from %s to %s is a line', (before, now, words) => {
    expect(changes(keptFigure('led', before), keptFigure('led', now))).toEqual([
      `CHANGED  kill  text of led  ${words}`,
    ]);
  });

  it.each([
    [10, 11],
    [10, 9],
    [0, 0],
    [null, null],
  ])('from %s to %s is none', (before, now) => {
    expect(changes(keptFigure('led', before), keptFigure('led', now))).toEqual([]);
  });

  it('knows of which figures more is better', () => {
    const promised = { atLeast: 5 };
    expect(changes(keptFigure('rate', 10), keptFigure('rate', 20, promised))[0]).toContain('+100 %, better');
    expect(changes(keptFigure('rate', 10), keptFigure('rate', 5, promised))[0]).toContain('-50 %, worse');
  });

  it('tells by how much the floor moved along', () => {
    const line = changes(
      keptFigure('led', 10, { floor: series(2) }),
      keptFigure('led', 15, { floor: series(2.8), ratio: series(5) }),
    );
    expect(line[0]).toContain('(+50 %, worse, floor +40 %)');
  });

  it('is not told of figures and cases that were not there, or of other sizes', () => {
    const now = keptCase('kill', [keptFigure('led', 10)]);
    const at = (sizes: Sizes) => keptCase('kill', [keptFigure('led', 1)], { sizes });
    expect(changesSince([at({ bases: 100 })], [now])).toHaveLength(1);
    expect(changesSince([at({ bases: 200 })], [now])).toEqual([]);
    expect(changesSince([at({ bases: 100, modules: 2 })], [now])).toEqual([]);
    expect(changesSince([at({ bases: 100, seconds: 10 })], [now])).toEqual([]);
    expect(changesSince([at({ bases: 100, rate: 10 })], [now])).toEqual([]);
    expect(changesSince([keptCase('kill', [keptFigure('held', 1)])], [now])).toEqual([]);
    expect(changesSince([keptCase('term', [keptFigure('led', 1)])], [now])).toEqual([]);
    expect(changesSince([], [now])).toEqual([]);
  });

  it('says when the machine is another one: only where something moved', () => {
    const before = keptCase('kill', [keptFigure('led', 1)], { machine: '64 cores' });
    expect(changesSince([before], [keptCase('kill', [keptFigure('led', 2)])])).toEqual([
      'Kept with another machine or version: 64 cores',
      'CHANGED  kill  text of led  1 s → 2 s (+100 %, worse)',
    ]);
    expect(changesSince([before], [keptCase('kill', [keptFigure('led', 1)])])).toEqual([]);
  });
});
