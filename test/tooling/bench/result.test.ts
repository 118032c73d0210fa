import { describe, expect, it } from 'vitest';
import { type CaseRun, type FigureResult, medianOf, resultOf } from '../../bench/result.ts';
import type { Figure } from '../../bench/suite.ts';
import { caseRun } from './case-run.ts';

const SUBJECTS = ['controller', 'floor'];

/** A figure with such promises, of runs that have these values; undefined: the run has none. */
function figureOf(
  promised: Omit<Figure, 'text' | 'unit'>,
  own: readonly (number | undefined)[],
  floor: readonly (number | undefined)[] = [],
): FigureResult {
  const runsOf = (subject: string, values: readonly (number | undefined)[]): CaseRun[] =>
    values.map((value, index) =>
      caseRun({ run: index + 1, subject, values: value === undefined ? {} : { figure: value } }),
    );
  const figures = { figure: { text: 'figure', unit: 's', ...promised } };
  const runs = [...runsOf('controller', own), ...runsOf('floor', floor)];
  const [figure] = resultOf({ name: 'case', figures, subjects: SUBJECTS }, runs, SUBJECTS).figures;
  if (!figure) throw new Error('no figure');
  return figure;
}

describe('the median', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 2, 3], 2.5],
    [[7], 7],
    [[Infinity, Infinity], Infinity],
    [[1, NaN, 2], NaN],
    [[], undefined],
  ])('of %j is %s', (values, median) => {
    expect(medianOf(values)).toBe(median);
  });
});

describe('a promise', () => {
  it.each([
    [{ atMost: 10 }, [9, 10, 11], true],
    [{ atMost: 10 }, [9, 10.5, 11], false],
    [{ atLeast: 10 }, [9, 10, 11], true],
    [{ atLeast: 10 }, [9, 9.5, 11], false],
    [{ atMost: 10, atLeast: 5 }, [4], false],
    [{ atMost: 10, atLeast: 5 }, [6], true],
    [{ atMost: 10 }, [Number.NaN], false],
    [{ atLeast: 10 }, [11, Number.NaN, 12], false],
    [{ atMost: 10 }, [], undefined],
    [{}, [1], undefined],
  ])('%j is held against the median of %j: %s', (promised, values, isKept) => {
    expect(figureOf(promised, values).isKept).toBe(isKept);
  });

  it.each([
    [{ timesFloorAtMost: 2 }, [4, 6], [2, 3], true],
    [{ timesFloorAtMost: 1.9 }, [4, 6], [2, 3], false],
    [{ timesFloorAtMost: 2, atMost: 4 }, [4, 6], [2, 3], false],
    [{ timesFloorAtMost: 2, atMost: 5 }, [4, 6], [2, 3], true],
    // What was not measured is not kept; what was missed is missed, whatever the rest.
    [{ timesFloorAtMost: 2, atMost: 5 }, [4, 6], [], undefined],
    [{ timesFloorAtMost: 2, atMost: 4 }, [4, 6], [], false],
  ])('%j of %j over %j: %s', (promised, own, floor, isKept) => {
    expect(figureOf(promised, own, floor).isKept).toBe(isKept);
  });
});

describe('a comparison', () => {
  it('takes the ratio within each run, and of these the median', () => {
    const figure = figureOf({}, [3, 10, 6], [1, 2, 6]);
    expect(figure).toMatchObject({ values: [3, 10, 6], median: 6, floor: { values: [1, 2, 6], median: 2 } });
    expect(figure.ratio).toEqual({ values: [3, 5, 1], median: 3 });
    // Of the medians it would be 10/3: a slow moment is slow for both.
    expect(figureOf({}, [30, 10, 6], [10, 1, 3]).ratio).toEqual({ values: [3, 10, 2], median: 3 });
  });

  it('leaves out the runs that one of the two does not have', () => {
    const { values, floor, ratio } = figureOf({}, [4, undefined, 9], [2, 5, undefined]);
    expect({ values, floor: floor?.values, ratio: ratio?.values }).toEqual({
      values: [4, 9],
      floor: [2, 5],
      ratio: [2],
    });
  });

  it('has no ratio with a run that failed', () => {
    const figures = { figure: { text: 'figure', unit: 's', timesFloorAtMost: 2 } };
    const runs = [
      caseRun({ run: 1, subject: 'controller', values: { figure: 4 } }),
      caseRun({ run: 1, subject: 'floor', failure: 'no broker' }),
      caseRun({ run: 2, subject: 'floor', values: { figure: 2 } }),
      caseRun({ run: 2, subject: 'controller', failure: 'no broker' }),
      caseRun({ run: 3, subject: 'controller', values: { figure: 9 } }),
      caseRun({ run: 3, subject: 'floor', values: { figure: 3 } }),
    ];
    const [figure] = resultOf({ name: 'case', figures, subjects: SUBJECTS }, runs, SUBJECTS).figures;
    expect(figure).toMatchObject({ values: [4, 9], floor: { values: [2, 3] }, ratio: { values: [3] }, isKept: false });
  });

  it('is not there, rather than NaN, where only one subject has the figure', () => {
    const own = figureOf({}, [1, 2]);
    expect('floor' in own || 'ratio' in own).toBe(false);
    const floor = figureOf({ atMost: 1 }, [undefined], [2]);
    expect(floor).toMatchObject({ values: [], median: undefined, floor: { values: [2] }, isKept: undefined });
    expect('ratio' in floor).toBe(false);
  });

  it('takes nothing over nothing for the same', () => {
    expect(figureOf({}, [0, 2], [0, 0]).ratio?.values).toEqual([1, Infinity]);
  });

  it('has the processes of both', () => {
    const usageOf = (cpuSeconds: number) => [{ name: 'one', cpuSeconds, residentMib: 100, peakMib: 110 }];
    const runs = [
      caseRun({ subject: 'controller', usage: usageOf(6) }),
      caseRun({ subject: 'floor', usage: usageOf(2) }),
    ];
    const { figures } = resultOf({ name: 'case', figures: {}, subjects: SUBJECTS }, runs, SUBJECTS);
    expect(figures.find(({ key }) => key === 'busiestCpu')).toMatchObject({ median: 6, ratio: { median: 3 } });
    expect(figures.find(({ key }) => key === 'peakMemory')).toMatchObject({ median: 110, ratio: { median: 1 } });
  });
});

describe('a floor with variants, and a peer', () => {
  const ALL = ['controller', 'floor 4', 'floor 8', 'kwok'];
  const figures = {
    ready: { text: 'until Ready', unit: 's', timesFloorAtMost: 2 },
    requests: { text: 'requests', unit: '' },
  };
  const ran = (run: number, subject: string, ready: number, requests: number): CaseRun =>
    caseRun({ run, subject, values: { ready, requests } });
  const runs = [
    ran(1, 'controller', 6, 10),
    ran(1, 'floor 4', 4, 1),
    ran(1, 'floor 8', 3, 2),
    ran(1, 'kwok', 5, 7),
    ran(2, 'controller', 8, 11),
    ran(2, 'floor 4', 2, 3),
    ran(2, 'floor 8', 5, 4),
    caseRun({ run: 2, subject: 'kwok', failure: 'no kwok' }),
  ];
  const result = resultOf({ name: 'case', figures, subjects: ALL }, runs, ALL);

  it('counts with the variant that was best in each run, and all figures of that one', () => {
    const [ready, requests] = result.figures;
    expect(ready).toMatchObject({ floor: { values: [3, 2] }, ratio: { values: [2, 4], median: 3 }, isKept: false });
    expect(requests?.floor?.values).toEqual([2, 3]);
  });

  it('keeps what each variant came to', () => {
    expect(result.variants).toEqual({ key: 'ready', values: { 'floor 4': [4, 2], 'floor 8': [3, 5] } });
    expect(result.runs).toEqual(runs);
    expect('variants' in resultOf({ name: 'case', figures, subjects: SUBJECTS }, [], SUBJECTS)).toBe(false);
  });

  it('passes over a variant that failed or has no number', () => {
    const broken = [
      caseRun({ subject: 'floor 4', failure: 'no broker' }),
      ran(1, 'floor 8', 9, 1),
      ran(2, 'floor 4', Number.NaN, 1),
      ran(2, 'floor 8', 7, 2),
    ];
    expect(resultOf({ name: 'case', figures, subjects: ALL }, broken, ALL).figures[0]?.floor?.values).toEqual([9, 7]);
  });

  it('stands beside the peer, which promises are not held against', () => {
    expect(result.figures[0]?.others).toEqual({ kwok: { values: [5], median: 5 } });
  });
});
