import { describe, expect, it } from 'vitest';
import { ReportLimit } from '../../src/report-limit.ts';

describe('what is logged and reported of one base', () => {
  it('is 30 lines at once, and then one each 10 s', () => {
    const limit = new ReportLimit(0);
    const admitted = (now: number): boolean => limit.admit(now) !== undefined;
    expect(Array.from({ length: 31 }, () => admitted(0))).toEqual([...new Array(30).fill(true), false]);
    expect([9_999, 10_000, 10_001, 19_999, 20_000].map(admitted)).toEqual([false, true, false, false, true]);
  });

  it('says how many lines were left out before it, once', () => {
    const limit = new ReportLimit(0);
    for (let line = 0; line < 30; line++) expect(limit.admit(0)).toEqual({});
    for (let line = 0; line < 3; line++) expect(limit.admit(0)).toBeUndefined();
    expect([limit.admit(20_000), limit.admit(20_000)]).toEqual([{ suppressed: 3 }, {}]);
  });
});
