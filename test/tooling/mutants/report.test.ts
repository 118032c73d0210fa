import { describe, expect, it } from 'vitest';
import type { Mutant } from '../../mutants/mutants.ts';
import { killOf, lineOf, ratePercent, survivorsText, tableText, type Verdict } from '../../mutants/report.ts';
import type { TrialResult } from '../../mutants/trial.ts';

const TEXT = 'f();\n  if (a < b) return;\ng(1);\n';

function mutant(from: string, to: string, operator: Mutant['operator']): Mutant {
  const start = TEXT.indexOf(from);
  const end = start + from.length;
  const line = TEXT.slice(0, start).split('\n').length;
  return { path: 'src/a.ts', operator, line, start, end, from, to, probe: { start, end, isStatement: false } };
}

const BOUNDARY = mutant('<', '<=', 'boundary');
const RETURN = mutant('return;', ';', 'return');
const NUMBER = mutant('1', '2', 'number');

const VERDICTS: readonly Verdict[] = [
  { mutant: NUMBER, outcome: 'not run' },
  { mutant: RETURN, outcome: 'timed out', by: 'test/unit/a.test.ts' },
  { mutant: BOUNDARY, outcome: 'survived' },
  { mutant: BOUNDARY, outcome: 'killed', by: 'test/unit/a.test.ts' },
];

describe('the report on mutants', () => {
  it('shows each survivor with its line before and after, in the order of the files', () => {
    expect(survivorsText(VERDICTS, () => TEXT).split('\n')).toEqual([
      "survived  src/a.ts:2 boundary '<' -> '<='",
      '  - if (a < b) return;',
      '  + if (a <= b) return;',
      "not run   src/a.ts:3 number '1' -> '2'",
      '  - g(1);',
      '  + g(2);',
    ]);
  });

  it('counts one that a test waits for ever on as killed, in a column of its own', () => {
    expect(tableText(VERDICTS).split('\n')).toEqual([
      'operator  mutants  killed  timed out  survived  not run   rate',
      'boundary        2       1          0         1        0   50 %',
      'number          1       0          0         0        1    0 %',
      'return          1       0          1         0        0  100 %',
      'all             4       1          1         1        1   50 %',
    ]);
    expect(ratePercent(VERDICTS)).toBe(50);
  });

  it('names the test file that killed a mutant', () => {
    const result: TrialResult = { outcome: 'failed', failure: 'no', ms: 1, slowestTestMs: 1, probes: [] };
    const kill = killOf(RETURN, 'test/unit/a.test.ts', result);
    expect(kill && lineOf(kill)).toBe("killed    src/a.ts:2 return 'return;' removed by test/unit/a.test.ts");
    expect(killOf(RETURN, 'test/unit/a.test.ts', { ...result, outcome: 'timed out' })?.outcome).toBe('timed out');
    expect(killOf(RETURN, 'test/unit/a.test.ts', { ...result, outcome: 'passed' })).toBeUndefined();
  });
});
