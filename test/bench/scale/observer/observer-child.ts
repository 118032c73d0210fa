import type { Pool } from 'undici';
import { serveCalls } from '../../../../samples/process/serve.ts';
import { keepWatching, poolOf } from '../http-pool.ts';
import { LeaseBook } from './lease-book.ts';
import { NodeBook } from './node-book.ts';
import type { ObserverCalls, ObserverOptions } from './observer.ts';
import { PodBook } from './pod-book.ts';
import { GROUP_LABEL, leaseLineOf, nodeLineOf, podLineOf } from './watch-line.ts';

/** The other end of `startObserver`. */

const LOOK_EACH_MS = 1_000;

const PATHS = {
  nodes: '/api/v1/nodes',
  pods: `/api/v1/pods?labelSelector=${GROUP_LABEL}`,
  leases: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
} as const;

const nodes = new NodeBook();
const pods = new PodBook();
let options: ObserverOptions | undefined;
let leaseWatch: LeaseWatch | undefined;
/** Looked at when something was seen; each leaves when it has its answer or its time is up. */
const waits = new Set<() => void>();

/** Resolves as soon as `look` gives a value; `words` says what did not come. */
function until<T>(look: () => T | undefined, timeoutMs: number, words: () => string): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (act: () => void): void => {
      clearTimeout(timer);
      waits.delete(check);
      act();
    };
    const check = (): void => {
      const value = look();
      if (value !== undefined) end(() => resolve(value));
    };
    const timer = setTimeout(() => end(() => reject(new Error(`${words()} after ${timeoutMs / 1000} s`))), timeoutMs);
    waits.add(check);
    check();
  });
}

function changed(): void {
  for (const check of waits) check();
}

/** Resolves when the API server has taken the watch. A failure ends the process: nothing is measured without it. */
async function watch(path: string, take: (line: Buffer) => void): Promise<Pool> {
  if (!options) throw new Error('start: the observer is not started');
  const { server, certificateAuthority: ca, credential } = options;
  const pool = poolOf(server, { ca, cert: credential.certificate, key: credential.privateKey }, 1);
  await new Promise<void>((resolve, reject) => {
    const onLine = (line: Buffer): void => {
      take(line);
      changed();
    };
    keepWatching(pool, { path, onOpen: resolve, onLine }).catch((error: Error) => {
      reject(error);
      if (!pool.destroyed) end(error);
    });
  });
  return pool;
}

function end(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}

/** Leases change more often than all else, so they are watched only while somebody asks how old they are. */
class LeaseWatch {
  readonly book = new LeaseBook();
  readonly #pool: Promise<Pool>;
  readonly #looking = setInterval(() => this.book.look(Date.now()), LOOK_EACH_MS);

  constructor() {
    this.#pool = watch(PATHS.leases, (line) => {
      const lease = leaseLineOf(line);
      if (lease) this.book.take(lease);
    });
  }

  async opened(): Promise<void> {
    await this.#pool;
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking);
    await (await this.#pool).destroy();
  }
}

function leases(): LeaseBook {
  if (!leaseWatch) throw new Error('watchLeases: leases are not watched');
  return leaseWatch.book;
}

const calls: ObserverCalls = {
  async start(given) {
    options = given;
    await Promise.all([
      watch(PATHS.nodes, (line) => {
        const node = nodeLineOf(line);
        if (node) nodes.take(node, Date.now());
      }),
      watch(PATHS.pods, (line) => {
        const pod = podLineOf(line);
        if (pod) pods.take(pod, Date.now());
      }),
    ]);
  },

  async untilNodesReady(count, timeoutMs) {
    const words = (): string => `${nodes.ready} of ${count} Nodes are ready`;
    await until(() => (nodes.ready >= count ? true : undefined), timeoutMs, words);
    return nodes.seen();
  },

  untilNodeLost: (name, timeoutMs) =>
    until(
      () => nodes.lostAt(name),
      timeoutMs,
      () => `${name} is still ready`,
    ),

  nodes: () => nodes.seen(),

  async untilPods(group, step, count, timeoutMs) {
    const words = (): string => `${pods.count(group, step)} of ${count} Pods '${group}' are ${step}`;
    await until(() => (pods.count(group, step) >= count ? true : undefined), timeoutMs, words);
    return pods.seen(group);
  },

  pods: (group) => pods.seen(group),

  async watchLeases() {
    leaseWatch ??= new LeaseWatch();
    await leaseWatch.opened();
  },

  async ignoreLeases() {
    const watched = leaseWatch;
    leaseWatch = undefined;
    await watched?.stop();
  },

  async untilRenewed(since, count, timeoutMs) {
    const book = leases();
    const words = (): string => `${book.renewedSince(since)} of ${count} leases are renewed`;
    await until(() => (book.renewedSince(since) >= count ? true : undefined), timeoutMs, words);
    return Date.now();
  },

  takeLeaseAges: () => leases().takeAges(),
};

serveCalls(calls);
