import { describe, expect, it } from 'vitest';
import { numberText, tableOf } from '../../bench/report.ts';
import { type CaseRun, medianOf, resultOf } from '../../bench/result.ts';

const CASE = {
  name: 'kill',
  figures: {
    led: { text: 'until others lead', unit: 's', atMost: 10 },
    leases: { text: 'leases it had', unit: '' },
  },
};

function ran(run: number, led: number, cpuSeconds: number): CaseRun {
  const usage = [
    { name: 'controller-0', cpuSeconds, residentMib: 120 },
    { name: 'controller-1', cpuSeconds: 0.1, residentMib: 130 },
  ];
  return { run, tookSeconds: 8, values: { led, leases: 100 }, details: {}, usage, pauseMs: 20 };
}

const FAILED: CaseRun = {
  run: 3,
  tookSeconds: 0,
  values: {},
  details: {},
  usage: [],
  pauseMs: 0,
  failure: 'no broker',
};

describe('the median', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 2, 3], 2.5],
    [[7], 7],
    [[Infinity, Infinity], Infinity],
    [[], undefined],
  ])('of %j is %s', (values, median) => {
    expect(medianOf(values)).toBe(median);
  });
});

describe('the report', () => {
  it('has median, promise and all values of each figure, and the worst replica of each run', () => {
    const result = resultOf(CASE, [ran(1, 6.5, 0.5), ran(2, 7.25, 0.75), ran(3, 6.75, 0.25)]);
    expect(tableOf([result])).toEqual([
      'CASE  FIGURE                             MEDIAN   PROMISED        ALL VALUES',
      'kill  until others lead                  6.75 s   ≤ 10      kept  6.5 7.25 6.75',
      '      leases it had                      100                      100 100 100',
      '      CPU time of the busiest replica    0.5 s                    0.5 0.75 0.25',
      '      memory of the largest replica      130 MiB                  130 130 130',
      '      longest pause of the bench itself  20 ms                    20 20 20',
    ]);
  });

  it('says what was missed: the median decides', () => {
    const [led] = resultOf(CASE, [ran(1, 9, 0), ran(2, 10.5, 0), ran(3, 11, 0)]).figures;
    expect(led).toMatchObject({ median: 10.5, isKept: false });
    expect(tableOf([resultOf(CASE, [ran(1, 10.5, 0)])]).join('\n')).toContain('MISSED');
  });

  it('counts what could not be measured neither as kept nor as missed', () => {
    const result = resultOf(CASE, [FAILED]);
    expect(result.figures.map(({ median, isKept }) => [median, isKept])).toEqual(
      result.figures.map(() => [undefined, undefined]),
    );
    expect(tableOf([result]).at(-1)).toBe('FAILED: kill, run 3: no broker');
  });

  it('takes a value that is no number for a promise that is missed', () => {
    expect(resultOf(CASE, [ran(1, Number.NaN, 0)]).figures[0]?.isKept).toBe(false);
  });

  it.each([
    [12.345, '12.3'],
    [0.05678, '0.0568'],
    [1234.5, '1235'],
    [100, '100'],
    [0, '0'],
    [Infinity, 'Infinity'],
  ])('shows %s as %s', (value, text) => {
    expect(numberText(value)).toBe(text);
  });
});
