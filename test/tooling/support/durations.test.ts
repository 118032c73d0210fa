import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type PlannedFile, recordedDurations, startOrder, textOf, updatedDurations } from '../../support/durations.ts';
import { ROOT, readText } from '../../unit/docs/sources.ts';

function result(path: string, seconds: number, status = 'passed') {
  return { name: `/clone/${path}`, status, startTime: 5_000, endTime: 5_000 + seconds * 1_000 };
}

function file(path: string, project = 'integration', isIsolated = true): PlannedFile {
  return { project, path, isIsolated };
}

const unit = (path: string): PlannedFile => file(path, 'unit', false);
const tooling = (path: string): PlannedFile => file(path, 'tooling', false);
const pathsOf = (files: readonly PlannedFile[]): string => files.map(({ path }) => path).join(' ');

describe('the record of durations', () => {
  it('takes the longest time of each file that passed, and keeps what the run does not have', () => {
    const testResults = [result('a', 3.4), result('b', 7), result('a', 9.6), result('failed', 1, 'failed')];
    const former = { a: 100, c: 5, failed: 8, gone: 6 };
    const options = { root: '/clone/', exists: (path: string) => path !== 'gone' };
    expect(updatedDurations(former, { testResults }, options)).toEqual({ a: 10, b: 7, c: 5, failed: 8 });
  });

  it('has no files of other clones', () => {
    const options = { root: '/other/', exists: () => true };
    expect(updatedDurations({ a: 1 }, { testResults: [result('a', 9)] }, options)).toEqual({ a: 1 });
  });

  it('is in the order of paths, as the script writes it, and names files that exist', () => {
    const durations = recordedDurations();
    const paths = Object.keys(durations);
    expect(paths).toEqual(paths.toSorted());
    expect(readText('test/support/durations.json')).toBe(textOf(durations));
    expect(paths.filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
  });
});

describe('the order of files', () => {
  it('is longest first, and before them those without a record', () => {
    const files = ['short', 'new', 'long', 'other'].map((path) => file(path));
    expect(pathsOf(startOrder(files, { short: 1, long: 9, other: 5 }, []))).toBe('new long other short');
  });

  it('has files that share processes at its end, project by project, most work first', () => {
    const files = [unit('u1'), tooling('t1'), file('i1'), unit('u2'), tooling('t2'), file('i2')];
    const durations = { u1: 10, u2: 20, t1: 30, t2: 40, i1: 1, i2: 2 };
    expect(pathsOf(startOrder(files, durations, []))).toBe('i2 i1 t2 t1 u2 u1');
  });

  it('has late files where their share of the work of files that share processes is done', () => {
    const files = [file('floods', 'calm'), file('cost', 'calm'), file('cost'), ...['u4', 'u3', 'u2', 'u1'].map(unit)];
    const durations = { u4: 4, u3: 3, u2: 2, u1: 1, floods: 50, cost: 60 };
    const late = [
      { project: 'calm', path: 'floods', afterShare: 0.7 },
      { project: 'calm', path: 'cost', afterShare: 0.2 },
      { project: 'calm', path: 'absent', afterShare: 0 },
    ];
    const order = startOrder(files, durations, late);
    expect(order.map(({ project, path }) => `${project}/${path}`)).toEqual([
      'integration/cost',
      'unit/u4',
      'calm/cost',
      'unit/u3',
      'calm/floods',
      'unit/u2',
      'unit/u1',
    ]);
  });

  it('has late files at its end where nothing shares a process', () => {
    const late = [{ project: 'calm', path: 'floods', afterShare: 0.4 }];
    expect(pathsOf(startOrder([file('floods', 'calm'), file('a')], {}, late))).toBe('a floods');
  });
});
