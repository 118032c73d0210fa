import { describe, expect, it } from 'vitest';
import { runSuite } from '../../bench/runner.ts';
import { type BenchCase, benchCase, type Sizes, type Stage, type StageOptions, type Suite } from '../../bench/suite.ts';

class Diary implements Stage {
  readonly lines: string[] = [];
  readonly subject: string;
  readonly profiler: Stage['profiler'];

  constructor(subject: string, profiler: Stage['profiler']) {
    this.subject = subject;
    this.profiler = profiler;
  }

  async close(): Promise<void> {
    this.lines.push('closed');
  }
}

interface CaseOptions {
  readonly fails?: 'prepare' | 'measure';
  /** Absent: with every subject. */
  readonly failsWith?: string;
  readonly subjects?: readonly string[];
  readonly isOptional?: true;
}

function caseOf(name: string, { fails, failsWith, ...more }: CaseOptions = {}): BenchCase<Diary> {
  const step = async (stage: Diary, what: 'prepare' | 'measure'): Promise<void> => {
    stage.lines.push(`${what} ${name}`);
    await Promise.resolve();
    if (fails === what && (failsWith ?? stage.subject) === stage.subject) throw new Error(`cannot ${what}`);
  };
  return benchCase({
    name,
    ...more,
    figures: { count: { text: 'count', unit: '', atMost: 1 }, rare: { text: 'not always there', unit: '' } },
    prepare: (stage: Diary) => step(stage, 'prepare'),
    watched: () => [],
    async measure(stage) {
      await step(stage, 'measure');
      return { values: { count: 1 } };
    },
    async finish(stage) {
      stage.lines.push(`finish ${name}`);
    },
  });
}

interface RunOptions {
  readonly runs?: number;
  readonly cases?: readonly string[];
  readonly subjects?: readonly string[];
  /** Of the command line. */
  readonly only?: readonly string[];
  readonly sizes?: Sizes;
  readonly profile?: string;
  readonly profiler?: Stage['profiler'];
}

async function run(steps: BenchCase<Diary>[][], options: RunOptions = {}) {
  const { runs = 1, cases = [], subjects, only = [], sizes = { bases: 1 }, profile, profiler } = options;
  const opened: { options: StageOptions; stage: Diary }[] = [];
  const progress: string[] = [];
  const suite: Suite<Diary> = {
    name: 'suite',
    text: 'what diaries promise',
    defaults: { runs: 1, bases: 1 },
    ...(subjects ? { subjects } : {}),
    steps,
    open(stageOptions) {
      const stage = new Diary(stageOptions.subject, profiler);
      opened.push({ options: stageOptions, stage });
      return stage;
    },
  };
  const onProgress = (line: string): void => void progress.push(line);
  const results = await runSuite(suite, { runs, sizes, cases, subjects: only, profile, onProgress, onStage: () => {} });
  return {
    results,
    progress,
    opened: opened.map((one) => one.options),
    subjects: opened.map(({ stage }) => stage.subject),
    diaries: opened.map(({ stage }) => stage.lines),
  };
}

describe('a suite', () => {
  it('runs step by step, the cases of a step side by side, each run on a stage of its own', async () => {
    const { results, diaries } = await run([[caseOf('a')], [caseOf('b'), caseOf('c')]], { runs: 2 });
    const diary = [
      ...['prepare a', 'measure a', 'finish a'],
      ...['prepare b', 'prepare c', 'measure b', 'measure c', 'finish b', 'finish c'],
      'closed',
    ];
    expect(diaries).toEqual([diary, diary]);
    expect(results.map(({ name, figures }) => [name, figures[0]?.values])).toEqual([
      ['a', [1, 1]],
      ['b', [1, 1]],
      ['c', [1, 1]],
    ]);
  });

  it('runs only the cases asked for', async () => {
    const { results, diaries } = await run([[caseOf('a')], [caseOf('b'), caseOf('c')]], { cases: ['c'] });
    expect(diaries).toEqual([['prepare c', 'measure c', 'finish c', 'closed']]);
    expect(results.map(({ name }) => name)).toEqual(['c']);
  });

  it('runs an optional case only when it is asked for', async () => {
    const steps = [[caseOf('a'), caseOf('heavy', { isOptional: true })]];
    expect((await run(steps)).results.map(({ name }) => name)).toEqual(['a']);
    expect((await run(steps, { cases: ['heavy'] })).results.map(({ name }) => name)).toEqual(['heavy']);
  });

  it('runs only the subjects asked for, with all variants of each', async () => {
    const subjects = ['own', 'floor 4', 'floor 8', 'peer'];
    const steps = [[caseOf('a', { subjects })]];
    expect((await run(steps, { subjects, only: ['floor'] })).subjects).toEqual(['floor 4', 'floor 8']);
    expect((await run(steps, { subjects, only: ['own', 'peer'] })).subjects).toEqual(['own', 'peer']);
  });

  it('measures what comes later apart: its values stand beside those of the case', async () => {
    const late: BenchCase<Diary> = {
      ...caseOf('a'),
      async afterwards(stage) {
        stage.lines.push('afterwards a');
        return { values: { rare: 7 }, details: { later: true } };
      },
    };
    const { results, diaries } = await run([[late]]);
    expect(diaries[0]).toEqual(['prepare a', 'measure a', 'afterwards a', 'finish a', 'closed']);
    expect(results[0]?.runs[0]).toMatchObject({ values: { count: 1, rare: 7 }, details: { later: true } });
  });

  it('tells the stage how much of everything there is', async () => {
    const { opened } = await run([[caseOf('a')]], { sizes: { bases: 7, modules: 3 } });
    expect(opened).toEqual([{ bases: 7, modules: 3, subject: '', onProgress: expect.any(Function) }]);
  });

  it('has no number for a figure that was not told', async () => {
    const { results, progress } = await run([[caseOf('a')]]);
    expect(results[0]?.figures.slice(0, 2)).toMatchObject([{ values: [1] }, { values: [], median: undefined }]);
    expect(progress).toContain('run 1/1: a: count 1');
  });

  it('ends a run with the step in which a case could not be prepared, and goes on with the next run', async () => {
    const steps = [[caseOf('a', { fails: 'prepare' }), caseOf('b')], [caseOf('c')]];
    const { results, diaries } = await run(steps, { runs: 2 });
    const diary = ['prepare a', 'prepare b', 'finish a', 'finish b', 'closed'];
    expect(diaries).toEqual([diary, diary]);
    expect(results.map(({ runs }) => runs.map(({ failure }) => failure))).toEqual([
      ['cannot prepare', 'cannot prepare'],
      ['cannot prepare', 'cannot prepare'],
      [],
    ]);
  });

  it('keeps what was measured beside a case that failed', async () => {
    const { results, diaries } = await run([[caseOf('a', { fails: 'measure' }), caseOf('b')], [caseOf('c')]]);
    expect(diaries[0]?.at(-1)).toBe('closed');
    expect(results.map(({ figures }) => figures[0]?.values)).toEqual([[], [1], []]);
    expect(results[0]?.runs[0]?.failure).toBe('cannot measure');
  });
});

describe('a suite with two subjects', () => {
  const subjects = ['controller', 'floor'];
  const both = { subjects };

  it('has a stage for each, in an order that alternates', async () => {
    const { results, subjects: order, diaries, progress } = await run([[caseOf('a', both)]], { subjects, runs: 3 });
    expect(order).toEqual(['controller', 'floor', 'floor', 'controller', 'controller', 'floor']);
    expect(diaries).toEqual(order.map(() => ['prepare a', 'measure a', 'finish a', 'closed']));
    expect(results[0]?.runs.map(({ run, subject }) => `${run} ${subject}`)).toEqual([
      ...['1 controller', '1 floor'],
      ...['2 floor', '2 controller'],
      ...['3 controller', '3 floor'],
    ]);
    expect(results[0]?.figures[0]).toMatchObject({ values: [1, 1, 1], ratio: { values: [1, 1, 1] } });
    expect(progress).toContain('run 2/3 floor: a: measuring');
  });

  it('runs a case for the first one only, unless it says more', async () => {
    const { results, diaries } = await run([[caseOf('a')], [caseOf('b', both)]], { subjects });
    expect(diaries).toEqual([
      ['prepare a', 'measure a', 'finish a', 'prepare b', 'measure b', 'finish b', 'closed'],
      ['prepare b', 'measure b', 'finish b', 'closed'],
    ]);
    expect(results.map((result) => result.subjects)).toEqual([['controller'], both.subjects]);
    expect(results.map(({ figures }) => figures[0]?.floor?.values)).toEqual([undefined, [1]]);
  });

  it('has the first one amid those that it is compared with', async () => {
    const many = ['controller', 'floor 8', 'floor 16', 'floor 32', 'kwok'];
    const { subjects: order } = await run([[caseOf('a', { subjects: many })]], { subjects: many, runs: 2 });
    expect(order.slice(0, 5)).toEqual(['floor 8', 'floor 16', 'controller', 'floor 32', 'kwok']);
    expect(order.slice(5)).toEqual(['kwok', 'floor 32', 'controller', 'floor 16', 'floor 8']);
  });

  it('opens no stage for a subject that has nothing to do', async () => {
    const steps = [[caseOf('a')], [caseOf('b', both)]];
    expect((await run(steps, { subjects, cases: ['a'], runs: 2 })).subjects).toEqual(['controller', 'controller']);
  });

  it('ends with a case that failed only the stage of that subject', async () => {
    const failing = caseOf('a', { subjects, fails: 'measure', failsWith: 'controller' });
    const { results, diaries } = await run([[failing], [caseOf('b', both)]], { subjects, runs: 2 });
    const [failed, whole] = [
      ['prepare a', 'measure a', 'finish a', 'closed'],
      ['prepare a', 'measure a', 'finish a', 'prepare b', 'measure b', 'finish b', 'closed'],
    ];
    expect(diaries).toEqual([failed, whole, whole, failed]);
    expect(results.map(({ figures }) => [figures[0]?.values, figures[0]?.floor?.values])).toEqual([
      [[], [1, 1]],
      [[], [1, 1]],
    ]);
    expect(results.some(({ figures }) => figures[0]?.ratio)).toBe(false);
  });

  it('has a profile of what is measured written for each case, into the folder asked for', async () => {
    const written: string[] = [];
    const profiler = {
      startProfile: async () => void written.push('start'),
      writeProfile: async (path: string) => void written.push(path),
    };
    const subjects = ['own', 'floor 8'];
    await run([[caseOf('one', { subjects })]], { subjects, profiler });
    expect(written).toEqual([]);
    await run([[caseOf('one', { subjects })]], { subjects, profiler, profile: 'folder' });
    expect(written).toEqual(['start', 'folder/one-own-1.cpuprofile', 'start', 'folder/one-floor-8-1.cpuprofile']);
  });

  it.each([
    ['nothing gives one', undefined, 'one: no profile: nothing here gives one'],
    [
      'it was killed meanwhile',
      { startProfile: async () => {}, writeProfile: () => Promise.reject(new Error('it ended')) },
      'one: no profile: it ended',
    ],
  ])('measures a case also without a profile: %s', async (_why, profiler, words) => {
    const { results, progress } = await run([[caseOf('one')]], { profile: 'folder', profiler });
    expect(progress.join('\n')).toContain(words);
    expect(results[0]?.runs[0]?.failure).toBeUndefined();
  });

  it('refuses a case for somebody else', async () => {
    await expect(run([[caseOf('a', { subjects: ['flor'] })]], { subjects })).rejects.toThrow(/a is for 'flor'/);
  });
});
