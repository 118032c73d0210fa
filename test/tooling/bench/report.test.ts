import { describe, expect, it } from 'vitest';
import { numberText, tableOf } from '../../bench/report.ts';
import { resultOf } from '../../bench/result.ts';
import { caseRun } from './case-run.ts';

const CASE = {
  name: 'kill',
  figures: {
    led: { text: 'until others lead', unit: 's', atMost: 10 },
    leases: { text: 'leases it had', unit: '' },
  },
};

function ran(run: number, led: number, cpuSeconds: number) {
  const usage = [
    { name: 'controller-0', cpuSeconds, residentMib: 120, peakMib: 140 },
    { name: 'controller-1', cpuSeconds: 0.1, residentMib: 130 },
  ];
  return caseRun({ run, values: { led, leases: 100 }, usage, pauseMs: 20, kernelCpuSeconds: 3 });
}

const FAILED = caseRun({ run: 3, failure: 'no broker' });

describe('the report', () => {
  it('has median, promise and all values of each figure, and the worst replica of each run', () => {
    const result = resultOf(CASE, [ran(1, 6.5, 0.5), ran(2, 7.25, 0.75), ran(3, 6.75, 0.25)]);
    expect(tableOf([result])).toEqual([
      'CASE  FIGURE                              MEDIAN   PROMISED        ALL VALUES',
      'kill  until others lead                   6.75 s   ≤ 10      kept  6.5 7.25 6.75',
      '      leases it had                       100                      100 100 100',
      '      CPU time of the busiest replica     0.5 s                    0.5 0.75 0.25',
      '      memory of the largest replica       130 MiB                  130 130 130',
      '      peak memory of the largest replica  140 MiB                  140 140 140',
      '      longest pause of the bench itself   20 ms                    20 20 20',
      '      CPU time of the kernel itself       3 s                      3 3 3',
    ]);
  });

  it('has a floor and a ratio where there are two subjects, and no word about them where only one has the figure', () => {
    const figures = {
      ready: { text: 'until Ready', unit: 's', atMost: 5, timesFloorAtMost: 1.5 },
      syncs: { text: 'syncs', unit: '', atLeast: 3 },
    };
    const compared = { name: 'rollout', figures, subjects: ['controller', 'floor'] };
    const runs = [
      caseRun({ run: 1, subject: 'controller', values: { ready: 4, syncs: 7 } }),
      caseRun({ run: 1, subject: 'floor', values: { ready: 2 } }),
      caseRun({ run: 2, subject: 'floor', values: { ready: 3 } }),
      caseRun({ run: 2, subject: 'controller', values: { ready: 6, syncs: 8 } }),
    ];
    const [heading, ready, syncs] = tableOf([resultOf(compared, runs, ['controller', 'floor'])]);
    expect(heading).toMatch(/^CASE +FIGURE +MEDIAN +FLOOR +RATIO +PROMISED +ALL VALUES$/);
    expect(ready).toMatch(/^rollout +until Ready +5 s +2\.5 s +2 +≤ 5, ≤ 1\.5 × floor +MISSED +4 6 \| 2 3$/);
    expect(syncs).toMatch(/^ +syncs +7\.5 +≥ 3 +kept +7 8$/);
  });

  it('has a column for a peer, and what each variant of the floor came to', () => {
    const subjects = ['controller', 'floor 4', 'floor 8', 'kwok'];
    const figures = { ready: { text: 'until Ready', unit: 's' }, syncs: { text: 'syncs', unit: '' } };
    const runs = [
      caseRun({ subject: 'controller', values: { ready: 4, syncs: 1 } }),
      caseRun({ subject: 'floor 4', values: { ready: 3 } }),
      caseRun({ subject: 'floor 8', values: { ready: 2 } }),
      caseRun({ subject: 'kwok', values: { ready: 5 } }),
    ];
    const lines = tableOf([resultOf({ name: 'announce', figures, subjects }, runs, subjects)]);
    expect(lines[0]).toMatch(/ FLOOR +RATIO +KWOK +PROMISED /);
    expect(lines[1]).toMatch(/^announce +until Ready +4 s +2 s +2 +5 s +4 \| 2 \| 5$/);
    expect(lines[2]).toMatch(/^ +syncs +1 +1$/);
    expect(lines.at(-1)).toBe('BEST OF  announce  until Ready (s)  floor 4: 3, floor 8: 2');
  });

  it('says which run of which subject failed', () => {
    const failed = caseRun({ run: 2, subject: 'floor', failure: 'no broker' });
    const lines = tableOf([
      resultOf({ ...CASE, subjects: ['controller', 'floor'] }, [failed], ['controller', 'floor']),
    ]);
    expect(lines.at(-1)).toBe('FAILED: kill, floor, run 2: no broker');
    expect(tableOf([resultOf(CASE, [FAILED])]).at(-1)).toBe('FAILED: kill, run 3: no broker');
  });

  it('says what was missed', () => {
    expect(tableOf([resultOf(CASE, [ran(1, 10.5, 0)])]).join('\n')).toContain('MISSED');
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
