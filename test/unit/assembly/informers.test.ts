import { describe, expect, it } from 'vitest';
import { VNODE_LEASES, VPODS } from '../../../src/assembly/vk-kinds.ts';
import { type Config, loadConfig } from '../../../src/config/config.ts';
import { VNODES } from '../../../src/kinds/vnode-object.ts';
import type { RestLane } from '../../../src/kube/transport/rest-lane.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { Informers, type WatchedKind } from '../../../src/reconcile/informers.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Notes what is asked for, and never answers. */
class NotingLane implements RestLane {
  readonly asked: string[] = [];

  request(): Promise<never> {
    throw new Error('no list is asked for with one answer');
  }

  open({ path, query, signal }: Parameters<RestLane['open']>[0]): Promise<never> {
    const { labelSelector, fieldSelector } = query ?? {};
    this.asked.push([path, labelSelector, fieldSelector].filter(Boolean).join(' '));
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  }
}

function rig(variables: Record<string, string> = {}) {
  const config: Config = loadConfig({ ENABLE_HTTP_TUNNEL: 'true', ENV: 'test', ...variables }, 'host-1');
  const lane = new NotingLane();
  const shared = { clock: new FakeClock(), logger: silentLogger, metrics: createMetrics() };
  return { lane, informers: new Informers({ config, lane, ...shared }) };
}

async function watched(kinds: readonly WatchedKind<never>[]): Promise<readonly string[]> {
  const { lane, informers } = rig();
  for (const kind of kinds) informers.get(kind);
  const stopping = new AbortController();
  const running = informers.runnables().map((runnable) => runnable.run(stopping.signal));
  stopping.abort();
  await Promise.all(running);
  return lane.asked;
}

describe('the informers of a process', () => {
  it('are one for each watched kind, however often it is asked for', () => {
    const { informers } = rig();
    const nodes = informers.get(VNODES);
    expect(informers.get(VNODES)).toBe(nodes);
    informers.get(VPODS);
    expect(informers.runnables().map(({ name }) => name)).toEqual(['Node informer', 'Pod informer']);
  });

  it('watch nothing that nobody asked for', async () => {
    expect(await watched([])).toEqual([]);
  });

  it('watch the Nodes and Leases of the ENV, and module Pods that are bound', async () => {
    expect(await watched([VNODES, VPODS, VNODE_LEASES] as unknown as WatchedKind<never>[])).toEqual([
      '/api/v1/nodes virtual-kubelet.koupleless.io/component=vnode,virtual-kubelet.koupleless.io/env=test',
      '/api/v1/pods virtual-kubelet.koupleless.io/component=module spec.nodeName!=',
      '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases virtual-kubelet.koupleless.io/component in (vnode-lease,vnode-member),virtual-kubelet.koupleless.io/env=test',
    ]);
  });

  it('have synced when all have', () => {
    const { informers } = rig();
    expect(informers.hasSynced()).toBe(true);
    informers.get(VNODES);
    expect(informers.hasSynced()).toBe(false);
  });
});
