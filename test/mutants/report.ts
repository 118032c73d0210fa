import type { Mutant } from './mutants.ts';
import type { TrialResult } from './trial.ts';

export interface Verdict {
  readonly mutant: Mutant;
  /** `not run`: no unit test runs the place. */
  readonly outcome: 'killed' | 'timed out' | 'survived' | 'not run';
  /** The test file that killed it. */
  readonly by?: string;
}

export function isKilled({ outcome }: Verdict): boolean {
  return outcome === 'killed' || outcome === 'timed out';
}

/** Undefined while the tests pass. */
export function killOf(mutant: Mutant, by: string, { outcome }: TrialResult): Verdict | undefined {
  if (outcome === 'passed') return undefined;
  return { mutant, by, outcome: outcome === 'timed out' ? 'timed out' : 'killed' };
}

export function lineOf({ mutant, outcome, by }: Verdict): string {
  const { path, line, from, to, operator } = mutant;
  const change = to === '' || to === ';' ? `'${from}' removed` : `'${from}' -> '${to}'`;
  return `${outcome.padEnd(9)} ${path}:${line} ${operator} ${change}${by === undefined ? '' : ` by ${by}`}`;
}

/** Those that live, each with its line as it is and as it was changed. */
export function survivorsText(verdicts: readonly Verdict[], textOf: (path: string) => string): string {
  return verdicts
    .filter((one) => !isKilled(one))
    .sort((one, other) => placeOf(one).localeCompare(placeOf(other)))
    .map((one) => {
      const { path, start, end, to } = one.mutant;
      const text = textOf(path);
      const from = text.lastIndexOf('\n', start - 1) + 1;
      const until = text.indexOf('\n', end);
      const changed = text.slice(from, start) + to + text.slice(end, until);
      return `${lineOf(one)}\n  - ${text.slice(from, until).trim()}\n  + ${changed.trim()}`;
    })
    .join('\n');
}

/** One row for each operator, and their sum. */
export function tableText(verdicts: readonly Verdict[]): string {
  const operators = [...new Set(verdicts.map(({ mutant }) => mutant.operator))].sort();
  const row = (name: string, own: readonly Verdict[]): string[] => {
    const count = (outcome: Verdict['outcome']): string => String(own.filter((one) => one.outcome === outcome).length);
    const rate = `${Math.floor(ratePercent(own))} %`;
    return [name, String(own.length), count('killed'), count('timed out'), count('survived'), count('not run'), rate];
  };
  const rows = [
    ['operator', 'mutants', 'killed', 'timed out', 'survived', 'not run', 'rate'],
    ...operators.map((operator) =>
      row(
        operator,
        verdicts.filter(({ mutant }) => mutant.operator === operator),
      ),
    ),
    row('all', verdicts),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0))) ?? [];
  return rows
    .map((cells) =>
      cells
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  '),
    )
    .join('\n');
}

export function ratePercent(verdicts: readonly Verdict[]): number {
  return (100 * verdicts.filter(isKilled).length) / verdicts.length;
}

function placeOf({ mutant }: Verdict): string {
  return `${mutant.path}:${String(mutant.line).padStart(5, '0')}`;
}
