import type { Exported } from '../../../src/platform/export/export-service.ts';
import type { ExportReplica } from './export-world.ts';
import { type BenchService, GROUP } from './objects.ts';

/** What a consumer will see of one change. */
export interface Expectation {
  readonly ip: string;
  readonly isThere: boolean;
  /** When the API server had answered, monotonic, ms. */
  answeredAt?: number;
  /** When the lines came that have it, of each replica. */
  readonly seenAt: number[];
}

/** A watcher of the group at each replica: how long after a write of the bench each of them has it. */
export class FeedBook {
  readonly #stops: (() => void)[] = [];
  readonly #expectations: Expectation[] = [];
  /** In the order of the changes, by the key of the Service; emptied as lines come. */
  readonly #pending: Map<string, Expectation[]>[] = [];
  readonly #onSeen = new Set<() => void>();
  readonly #ended: string[] = [];
  #isClosed = false;
  #lines = 0;
  #fewest = Number.POSITIVE_INFINITY;

  static async open(replicas: readonly ExportReplica[]): Promise<FeedBook> {
    const book = new FeedBook();
    for (const { name, client } of replicas) {
      const pending = new Map<string, Expectation[]>();
      book.#pending.push(pending);
      const synced = Promise.withResolvers<void>();
      const onLine = ({ type, object }: { type: string; object?: Exported }): void => {
        if (type === 'SYNCED') synced.resolve();
        else if (object) book.#take(pending, object);
      };
      const onEnd = (): void => {
        synced.reject(new Error('the feed has ended'));
        book.#end(name);
      };
      book.#stops.push(await client.watch(`?group=${GROUP}`, onLine, onEnd));
      await synced.promise;
    }
    book.#lines = 0;
    book.#fewest = Number.POSITIVE_INFINITY;
    return book;
  }

  /** Makes a change that puts `ip` among the backends of a Service, or takes it out; resolves when it is answered. */
  async expect(
    { key }: BenchService,
    change: Pick<Expectation, 'ip' | 'isThere'>,
    act: () => Promise<void>,
  ): Promise<Expectation> {
    const expectation: Expectation = { ...change, seenAt: [] };
    this.#expectations.push(expectation);
    for (const pending of this.#pending) {
      const ofService = pending.get(key) ?? [];
      pending.set(key, ofService);
      ofService.push(expectation);
    }
    await act();
    expectation.answeredAt = performance.now();
    return expectation;
  }

  /** Resolves when a change was seen at every replica. */
  untilSeen({ seenAt }: Expectation, timeoutMs: number): Promise<void> {
    return this.#until(() => seenAt.length === this.#pending.length, timeoutMs);
  }

  /** Resolves when all changes were. */
  untilAllSeen(timeoutMs: number): Promise<void> {
    return this.#until(() => this.#pending.every((pending) => pending.size === 0), timeoutMs);
  }

  #until(isSo: () => boolean, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#onSeen.delete(look);
      };
      const look = (): void => {
        if (!isSo()) return;
        end();
        resolve();
      };
      const timer = setTimeout(() => {
        end();
        const some = this.#pending.map((pending) => `${pending.size}: ${[...pending.keys()].slice(0, 3)}`);
        const ended = this.#ended.length === 0 ? '' : `; ended: ${this.#ended.join()}`;
        reject(
          new Error(`changes of Services that no line shows after ${timeoutMs / 1000} s: ${some.join('; ')}${ended}`),
        );
      }, timeoutMs);
      this.#onSeen.add(look);
      look();
    });
  }

  /** Sorted, ms, of all changes at all replicas; a line that was faster than the answer is 0. */
  latencies(): number[] {
    const all = this.#expectations.flatMap(({ answeredAt = Number.NaN, seenAt }) =>
      seenAt.map((at) => Math.max(0, at - answeredAt)),
    );
    return all.sort((a, b) => a - b);
  }

  get changes(): number {
    return this.#expectations.length;
  }

  /** Since it was opened. */
  get lines(): number {
    return this.#lines;
  }

  /** Backends in the shortest list that any line had. */
  get fewest(): number {
    return this.#fewest;
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
  }

  #end(replica: string): void {
    if (!this.#isClosed) this.#ended.push(`${replica} at ${new Date().toISOString()}`);
  }

  /** A line may show several changes of its Service; the earlier ones are in it too. */
  #take(pending: Map<string, Expectation[]>, { namespace, serviceName, ports }: Exported): void {
    const at = performance.now();
    this.#lines++;
    const ips = new Set(ports.flatMap(({ backends }) => backends.map(({ targetIP }) => targetIP)));
    this.#fewest = Math.min(this.#fewest, ips.size);
    const key = `${namespace}/${serviceName}`;
    const ofService = pending.get(key);
    const isIn = ({ ip, isThere }: Expectation): boolean => ips.has(ip) === isThere;
    const first = ofService?.findIndex(isIn) ?? -1;
    if (ofService === undefined || first < 0) return;
    const next = ofService.findIndex((one, index) => index > first && !isIn(one));
    for (const expectation of ofService.splice(0, next < 0 ? ofService.length : next)) expectation.seenAt.push(at);
    if (ofService.length === 0) pending.delete(key);
    for (const look of this.#onSeen) look();
  }
}
