import { ApiClient } from '../../../../samples/control-plane/api-client.ts';
import { serveCalls } from '../../../../samples/process/serve.ts';
import { ObjectRecorder } from '../../../support/cluster/object-recorder.ts';
import { LeaseBook } from './lease-book.ts';
import { NodeBook } from './node-book.ts';
import type { ObserverCalls } from './observer.ts';
import { GROUP_LABEL, PodBook } from './pod-book.ts';

/** The other end of `startObserver`. */

const LOOK_EACH_MS = 1_000;

const PATHS = {
  nodes: '/api/v1/nodes',
  pods: `/api/v1/pods?labelSelector=${GROUP_LABEL}`,
  leases: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
} as const;

const nodes = new NodeBook();
const pods = new PodBook();
const leases = new LeaseBook();
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

const calls: ObserverCalls = {
  async start(options) {
    const admin = new ApiClient(options);
    await Promise.all([
      ObjectRecorder.start(admin, PATHS.nodes, ({ object, at, isGone }) => {
        nodes.take(object, at, isGone);
        changed();
      }),
      ObjectRecorder.start(admin, PATHS.pods, ({ object, at, isGone }) => {
        pods.take(object, at, isGone);
        changed();
      }),
      ObjectRecorder.start(admin, PATHS.leases, ({ object, isGone }) => {
        leases.take(object, isGone);
        changed();
      }),
    ]);
    setInterval(() => leases.look(Date.now()), LOOK_EACH_MS);
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

  async untilRenewed(since, count, timeoutMs) {
    const words = (): string => `${leases.renewedSince(since)} of ${count} leases are renewed`;
    await until(() => (leases.renewedSince(since) >= count ? true : undefined), timeoutMs, words);
    return Date.now();
  },

  takeLeaseAges: () => leases.takeAges(),
};

serveCalls(calls);
