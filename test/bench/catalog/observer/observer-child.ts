import { serveCalls } from '../../../../samples/process/serve.ts';
import { keepWatching, poolOf } from '../../scale/http-pool.ts';
import { monotonicMs } from '../monotonic.ts';
import { PATHS } from '../objects.ts';
import { ChangeBook } from './change-book.ts';
import { moduleLineOf, type ObjectLine, workloadLineOf } from './object-line.ts';
import type { ObserverCalls, ObserverOptions } from './observer.ts';

/** The other end of `startObserver`. */

const modules = new Set<string>();
const ready = new Set<string>();
const workloads = new Set<string>();
/** When one was added last. */
let composedAt = Number.NaN;
let readyAt = Number.NaN;
let book = new ChangeBook(0, 0);
/** Looked at when something was seen; each leaves when it has its answer or its time is up. */
const waits = new Set<() => void>();

function takeModule(line: ObjectLine, at: number): void {
  if (line.isGone) modules.delete(line.key);
  else modules.add(line.key);
  if (line.isGone || !line.isReady) ready.delete(line.key);
  else if (!ready.has(line.key)) {
    ready.add(line.key);
    readyAt = at;
  }
  book.takeModule(line, at);
}

function takeWorkload(line: ObjectLine, at: number): void {
  if (line.isGone) workloads.delete(line.key);
  else if (!workloads.has(line.key)) {
    workloads.add(line.key);
    composedAt = at;
  }
  book.takeWorkload(line, at);
}

/** Resolves with whether `isTrue` has come within that time. */
function until(isTrue: () => boolean, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (result: boolean): void => {
      clearTimeout(timer);
      waits.delete(check);
      resolve(result);
    };
    const check = (): void => {
      if (isTrue()) end(true);
    };
    const timer = setTimeout(() => end(false), timeoutMs);
    waits.add(check);
    check();
  });
}

/** Resolves when the API server has taken the watch. A failure ends the process: nothing is measured without it. */
function watch(
  { server, certificateAuthority: ca, credential }: ObserverOptions,
  path: string,
  take: (line: Buffer, at: number) => void,
): Promise<void> {
  const pool = poolOf(server, { ca, cert: credential.certificate, key: credential.privateKey }, 1);
  return new Promise<void>((resolve, reject) => {
    const onLine = (line: Buffer): void => {
      // Before the line is read: that takes the observer's time.
      take(line, monotonicMs());
      for (const check of waits) check();
    };
    keepWatching(pool, { path, onOpen: resolve, onLine }).catch((error: Error) => {
      reject(error);
      setImmediate(() => {
        throw error;
      });
    });
  });
}

serveCalls<ObserverCalls>({
  async start(options) {
    await Promise.all([
      watch(options, PATHS.modules, (line, at) => {
        const module = moduleLineOf(line);
        if (module) takeModule(module, at);
      }),
      watch(options, PATHS.workloads, (line, at) => {
        const workload = workloadLineOf(line);
        if (workload) takeWorkload(workload, at);
      }),
    ]);
  },

  progress: () => ({ modules: modules.size, workloads: workloads.size, ready: ready.size }),

  async untilReady(count, timeoutMs) {
    if (await until(() => ready.size >= count, timeoutMs)) return { composedAt, readyAt };
    throw new Error(`${ready.size} of ${count} Modules are Ready after ${timeoutMs / 1000} s`);
  },

  expectChanges(from, count) {
    book = new ChangeBook(from, count);
  },

  async changesSeen(timeoutMs) {
    await until(() => book.isComplete, timeoutMs);
    return book.seen();
  },
});
