import type { Pool } from 'undici';
import { describe, expect, it } from 'vitest';
import { compose } from '../../../src/platform/catalog/compose/compose.ts';
import type { ModuleSpec } from '../../../src/platform/catalog/module/module.ts';
import { ApplyBody } from '../../bench/catalog/floor/apply-body.ts';
import { type ChangeSent, latenciesOf } from '../../bench/catalog/latencies.ts';
import { changeOf, moduleObject, modulesOf, NAMESPACES } from '../../bench/catalog/objects.ts';
import { ChangeBook } from '../../bench/catalog/observer/change-book.ts';
import { moduleLineOf, workloadLineOf } from '../../bench/catalog/observer/object-line.ts';
import { writeChanges } from '../../bench/catalog/writer.ts';

const FROM = 1_000;

function sent(number: number, times: Partial<ChangeSent> = {}): ChangeSent {
  const dueAt = 10 * (number - FROM);
  return { number, dueAt, sentAt: dueAt, answeredAt: dueAt + 5, ...times };
}

describe('a change of a Module', () => {
  it('takes from its event to that of the workload', () => {
    const book = new ChangeBook(FROM, 2);
    book.takeModule({ key: 'a/x', number: FROM }, 3);
    book.takeModule({ key: 'a/y', number: FROM + 1 }, 13);
    book.takeWorkload({ key: 'a/x', number: FROM }, 7);
    expect(book.isComplete).toBe(false);
    book.takeWorkload({ key: 'a/y', number: FROM + 1 }, 33);
    expect(book.isComplete).toBe(true);
    expect(book.seen()).toEqual([
      { number: FROM, moduleAt: 3, workloadAt: 7, isOvertaken: false },
      { number: FROM + 1, moduleAt: 13, workloadAt: 33, isOvertaken: false },
    ]);
    expect(latenciesOf([sent(FROM), sent(FROM + 1)], book.seen())).toMatchObject({
      p50: 4,
      p99: 20,
      max: 20,
      sentP50: 7,
      sentP99: 23,
      lost: 0,
      overtaken: 0,
    });
  });

  it('counts at its first events: statuses bring more', () => {
    const book = new ChangeBook(FROM, 1);
    for (const at of [3, 8]) book.takeModule({ key: 'a/x', number: FROM }, at);
    for (const at of [7, 9]) book.takeWorkload({ key: 'a/x', number: FROM }, at);
    expect(book.seen()).toMatchObject([{ moduleAt: 3, workloadAt: 7 }]);
  });

  it('is of its own object, and of this book', () => {
    const book = new ChangeBook(FROM, 1);
    book.takeModule({ key: 'a/x', number: FROM }, 3);
    book.takeWorkload({ key: 'b/x', number: FROM }, 4);
    book.takeWorkload({ key: 'a/x', number: FROM - 1 }, 5);
    book.takeModule({ key: 'a/x', number: FROM + 1 }, 6);
    expect(book.isComplete).toBe(false);
    expect(book.seen()).toMatchObject([{ workloadAt: null }]);
  });

  it('takes nothing when the watch of workloads is ahead of that of Modules', () => {
    const book = new ChangeBook(FROM, 1);
    book.takeWorkload({ key: 'a/x', number: FROM }, 7);
    book.takeModule({ key: 'a/x', number: FROM }, 8);
    expect(book.isComplete).toBe(true);
    expect(latenciesOf([sent(FROM)], book.seen())).toMatchObject({ p99: 0, sentP99: 7, lost: 0 });
  });

  it('is overtaken when the workload is seen with a later one, and takes until then', () => {
    const book = new ChangeBook(FROM, 3);
    book.takeModule({ key: 'a/x', number: FROM }, 0);
    book.takeModule({ key: 'a/x', number: FROM + 1 }, 10);
    book.takeWorkload({ key: 'a/x', number: FROM + 2 }, 40);
    book.takeModule({ key: 'a/x', number: FROM + 2 }, 41);
    expect(book.isComplete).toBe(true);
    expect(book.seen().map(({ isOvertaken }) => isOvertaken)).toEqual([true, true, false]);
    const all = [sent(FROM), sent(FROM + 1), sent(FROM + 2)];
    expect(latenciesOf(all, book.seen())).toMatchObject({ p50: 30, max: 40, overtaken: 2, lost: 0 });
  });

  it.each([
    ['the workload', (book: ChangeBook) => book.takeModule({ key: 'a/x', number: FROM + 1 }, 12)],
    ['the Module', () => {}],
  ])('is lost when %s was never seen with it, and has taken forever', (_, see) => {
    const book = new ChangeBook(FROM, 2);
    book.takeModule({ key: 'a/x', number: FROM }, 3);
    book.takeWorkload({ key: 'a/x', number: FROM }, 7);
    see(book);
    expect(book.isComplete).toBe(false);
    expect(latenciesOf([sent(FROM), sent(FROM + 1)], book.seen())).toMatchObject({
      p50: 4,
      p99: Number.POSITIVE_INFINITY,
      sentP99: Number.POSITIVE_INFINITY,
      lost: 1,
    });
  });

  it('that the bench sends late is reported', () => {
    const changes = [0, 1, 2].map((turn) => sent(FROM + turn, { sentAt: 15 * turn, answeredAt: 15 * turn + 9 }));
    expect(latenciesOf(changes, [])).toMatchObject({ lateP99: 10, lateMax: 10, answerP99: 9, lost: 3 });
    expect(latenciesOf(changes, []).rate).toBeCloseTo(3000 / 39);
  });
});

/** A pool that answers when the test says so, and writes down what was asked. */
class HeldPool {
  readonly asked: string[] = [];
  readonly #answers: (() => void)[] = [];
  #expected: { readonly count: number; readonly resolve: () => void } | undefined;

  get pool(): Pool {
    return this as unknown as Pool;
  }

  request({ path, body }: { path: string; body: string }) {
    const { deploy } = JSON.parse(body).spec;
    this.asked.push(`${path.split('/').at(-1)} ${deploy.strategy.rollingUpdate.maxSurge}`);
    if (this.asked.length === this.#expected?.count) this.#expected.resolve();
    const { promise, resolve } = Promise.withResolvers<{ statusCode: number; body: { text(): Promise<string> } }>();
    this.#answers.push(() => resolve({ statusCode: this.statusCode, body: { text: async () => 'the answer' } }));
    return promise;
  }

  statusCode = 200;

  /** Resolves when so many requests were asked in all. */
  until(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.asked.length >= count) resolve();
    this.#expected = { count, resolve };
    return promise;
  }

  answer(): void {
    this.#answers.shift()?.();
  }
}

describe('the writer of changes', () => {
  const modules = modulesOf(2);
  const [first = '', second = ''] = modules.map(({ name }) => name);

  it('waits for no answer, but for that of the former change of the same Module', async () => {
    const held = new HeldPool();
    const writing = writeChanges({ pool: held.pool, modules, from: FROM, count: 4, rate: 1_000 });
    await held.until(2);
    held.answer();
    await held.until(3);
    expect(held.asked).toEqual([`${first} ${FROM}`, `${second} ${FROM + 1}`, `${first} ${FROM + 2}`]);
    held.answer();
    await held.until(4);
    held.answer();
    held.answer();
    const changes = await writing;
    expect(changes.map(({ number }) => number)).toEqual([FROM, FROM + 1, FROM + 2, FROM + 3]);
    for (const { dueAt, sentAt, answeredAt } of changes) {
      expect(sentAt).toBeGreaterThanOrEqual(dueAt);
      expect(answeredAt).toBeGreaterThanOrEqual(sentAt);
    }
    const [{ dueAt: begin = 0 } = {}] = changes;
    expect(changes.map(({ dueAt }) => Math.round(dueAt - begin))).toEqual([0, 1, 2, 3]);
  });

  it('fails when a change is refused', async () => {
    const held = new HeldPool();
    held.statusCode = 422;
    const writing = writeChanges({ pool: held.pool, modules, from: FROM, count: 1, rate: 1_000 });
    await held.until(1);
    held.answer();
    await expect(writing).rejects.toThrow(/422 the answer/);
  });
});

describe('a line of a watch', () => {
  const [module] = modulesOf(1);
  if (module === undefined) throw new Error('there is none');
  const object = { ...moduleObject(module), status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  const lineOf = (type: string, of: object): Buffer => Buffer.from(JSON.stringify({ type, object: of }));
  const workload = (maxSurge: unknown) => ({
    metadata: { name: 'x', namespace: 'a', labels: { name: 'other' } },
    spec: {
      template: { spec: { strategy: { rollingUpdate: { maxSurge: 7 } } } },
      strategy: { rollingUpdate: { maxSurge } },
    },
  });

  it('of a Module has the number of its change', () => {
    const changed = { ...object, spec: { ...(object.spec as object), ...changeOf(FROM).spec } };
    const key = `${module.namespace}/${module.name}`;
    expect(moduleLineOf(lineOf('ADDED', object))).toEqual({ key, number: 1, isGone: false, isReady: true });
    expect(moduleLineOf(lineOf('MODIFIED', changed))).toMatchObject({ key, number: FROM });
    expect(moduleLineOf(lineOf('DELETED', object))).toMatchObject({ key, isGone: true });
  });

  it('of a workload has that of its strategy', () => {
    const found = { key: 'a/x', number: FROM, isGone: false, isReady: false };
    expect(workloadLineOf(lineOf('MODIFIED', workload(FROM)))).toEqual(found);
    expect(workloadLineOf(lineOf('MODIFIED', workload('25%')))).toBeUndefined();
  });

  it('may be of no object, or a failure', () => {
    expect(moduleLineOf(lineOf('BOOKMARK', object))).toBeUndefined();
    expect(() => moduleLineOf(lineOf('ERROR', { code: 410 }))).toThrow('a watch failed');
  });
});

describe('the body that the floor applies', () => {
  const [first] = modulesOf(1);
  if (first === undefined) throw new Error('there is none');
  const spec = moduleObject(first).spec as unknown as ModuleSpec;
  const release = { id: 'r1', image: 'https://jars.example.com/module-0-1.0.0-ark-biz.jar', sha256: 'a'.repeat(64) };
  const inputOf = (of: ModuleSpec) => ({
    module: { namespace: first.namespace, name: first.name, uid: 'uid-1', annotations: {}, spec: of },
    release,
    env: 'dev',
  });

  it.each([1, FROM, 123_456])('is that of the catalog, byte by byte: %i', (number) => {
    const changed = { ...spec, deploy: { ...spec.deploy, ...changeOf(number).spec.deploy } };
    const composition = compose(inputOf(changed));
    if ('fault' in composition) throw new Error(composition.fault);
    const body = ApplyBody.of(inputOf(spec));
    expect(body.with(number)).toBe(JSON.stringify(composition.workload));
    expect(body.with(number)).toContain(`"${body.digestOf(number)}"`);
  });
});

describe('the Modules of the bench', () => {
  it('are half in one namespace, and spread over the others', () => {
    const all = modulesOf(400);
    const counts = Map.groupBy(all, ({ namespace }) => namespace);
    expect(counts.size).toBe(NAMESPACES);
    const [deep = [], ...others] = [...counts.values()];
    expect(deep).toHaveLength(200);
    for (const of of others) expect([10, 11]).toContain(of.length);
    expect(new Set(all.map(({ name }) => name)).size).toBe(400);
  });
});
