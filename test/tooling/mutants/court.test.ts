import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Court } from '../../mutants/court.ts';
import { PROBE, type TrialResult } from '../../mutants/trial.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const SOURCE = resolve(ROOT, 'src/token-bucket.ts');
const OF_SOURCE = resolve(ROOT, 'test/unit/vnode/limits.test.ts');
const OF_OTHERS = resolve(ROOT, 'test/unit/queue/backoff.test.ts');
const TEXT = readFileSync(SOURCE, 'utf8');

const directory = mkdtempSync(join(tmpdir(), 'court-'));
const court = new Court(directory);

beforeAll(() => court.open(1));
afterAll(() => {
  court.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

/** What each test file does while the source has this text. */
async function results(text: string, testFiles: readonly string[], limitMs = 60_000): Promise<TrialResult[]> {
  const found: TrialResult[] = [];
  await court.forEach(testFiles, async (testFile, run) => {
    found.push(await run({ testFile, sources: { [SOURCE]: text }, testTimeoutMs: 30_000 }, limitMs));
  });
  return found;
}

async function outcomes(text: string, testFiles: readonly string[], limitMs?: number): Promise<string[]> {
  return (await results(text, testFiles, limitMs)).map(({ outcome }) => outcome);
}

describe('one process that runs test files', () => {
  it('sees a fault in a source while it is there, in the files that use it, and writes nothing', async () => {
    const faulty = TEXT.replace('this.#tokens < 1', 'this.#tokens < 3');
    expect(faulty).not.toBe(TEXT);
    const files = [OF_SOURCE, OF_OTHERS, OF_SOURCE];
    expect(await outcomes(faulty, files)).toEqual(['failed', 'passed', 'failed']);
    expect(await outcomes(TEXT, files)).toEqual(['passed', 'passed', 'passed']);
    expect(readFileSync(SOURCE, 'utf8')).toBe(TEXT);
  });

  it('tells which probes a file runs', async () => {
    const probed = TEXT.replace('if (this.#tokens < 1)', `${PROBE}(3); if (this.#tokens < 1)`);
    const all = await results(probed, [OF_SOURCE, OF_OTHERS]);
    expect(all.map(({ probes }) => probes)).toEqual([[3], []]);
  });

  it('fails with what cannot be loaded', async () => {
    expect(await outcomes(`${TEXT}\nthrow new Error('no');`, [OF_SOURCE])).toEqual(['failed']);
  });

  it('is replaced when a source loops for ever', async () => {
    const endless = `${TEXT}\nfor (;;);`;
    expect(await outcomes(endless, [OF_SOURCE], 3_000)).toEqual(['timed out']);
    expect(await outcomes(endless, [OF_OTHERS])).toEqual(['passed']);
  });

  it('lists the unit tests', () => {
    expect(court.testFiles).toEqual(expect.arrayContaining([OF_SOURCE, OF_OTHERS]));
    expect(court.testFiles.filter((file) => /test\/(integration|attacks|e2e)\//.test(file))).toEqual([]);
  });
});
