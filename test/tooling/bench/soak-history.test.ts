import { describe, expect, it } from 'vitest';
import { nodeDifferences, unexplainedNodes } from '../../bench/soak/outages.ts';
import { moduleDifferences } from '../../bench/soak/settle.ts';
import { judgedUntil, withoutPast } from '../../bench/soak/slices.ts';
import { executedTwice, uninstalledThoughWanted } from '../../support/cluster/check-modules.ts';
import {
  type ClusterFacts,
  NO_FACTS,
  type NodeFact,
  type OperationFact,
  type PodFact,
} from '../../support/cluster/facts.ts';

const MODULE = 'shop:1.0.0';

function podOf(uid: string, at: number, over: Partial<PodFact> = {}): PodFact {
  const bound = { nodeName: 'vnode.b', modules: [MODULE], deletedAt: undefined, isOver: false, ready: 'True' };
  return { name: uid, uid, ...bound, at, isGone: false, ...over };
}

function operationOf(command: string, at: number, over: Partial<OperationFact> = {}): OperationFact {
  return { base: 'b', command, module: MODULE, stateAtReceipt: '', outcome: 'executed', at, finishedAt: at, ...over };
}

const LIFE: ClusterFacts = {
  ...NO_FACTS,
  pods: [podOf('p', 0, { nodeName: '' }), podOf('p', 10), podOf('p', 20), podOf('p', 30), podOf('p', 40)],
  operations: [operationOf('installBiz', 12)],
};

describe('a history that forgets', () => {
  it('keeps of a Pod that is there when it was bound, and its installs', () => {
    const left = withoutPast(LIFE, 1_000);
    expect(left.pods.map(({ at }) => at)).toEqual([10, 40]);
    expect(left.operations).toEqual(LIFE.operations);
  });

  it('still finds what is wrong with it hours later', () => {
    const left = withoutPast(withoutPast(LIFE, 1_000), 10_000);
    const later = 20_000;
    const uninstall = operationOf('uninstallBiz', later);
    const after = {
      ...left,
      pods: [...left.pods, podOf('p', later + 5_000)],
      operations: [...left.operations, uninstall],
    };
    expect(uninstalledThoughWanted(after, { since: later }).map(({ kind }) => kind)).toEqual([
      'uninstalled though wanted',
    ]);
    const again = { ...left, operations: [...left.operations, operationOf('installBiz', later)] };
    expect(executedTwice(again, { since: later }).map(({ text }) => text)).toEqual([
      `${MODULE} was installed 2 times for 1 Pods and 0 restarts`,
    ]);
  });

  it('forgets a Pod that has gone with its installs, once nothing of it is recent', () => {
    const gone = { ...LIFE, pods: [...LIFE.pods, podOf('p', 50, { isGone: true })] };
    expect(withoutPast(gone, 50).pods).not.toEqual([]);
    const left = withoutPast(gone, 1_000);
    expect([left.pods, left.operations]).toEqual([[], []]);
  });

  it('but not while another Pod wants the same there: installs are counted against both', () => {
    const both = { ...LIFE, pods: [...LIFE.pods, podOf('p', 50, { isGone: true }), podOf('q', 60)] };
    const left = withoutPast({ ...both, operations: [...both.operations, operationOf('installBiz', 61)] }, 1_000);
    expect(new Set(left.pods.map(({ uid }) => uid))).toEqual(new Set(['p', 'q']));
    expect(executedTwice(left)).toEqual([]);
  });

  it('keeps the newest lease and Node of before, and none of what was gone by then', () => {
    const lease = {
      base: 'b',
      holder: 'a',
      acquiredAt: 1,
      renewedAt: 1,
      transitions: 0,
      resourceVersion: '',
      isGone: false,
    };
    const node = nodeOf('True');
    const leases = [1, 2, 3].map((at) => ({ ...lease, at }));
    const nodes = [node(1), node(2), nodeOf('True', { isGone: true })(3)];
    const left = withoutPast({ ...NO_FACTS, leases, nodes }, 100);
    expect(left.leases.map(({ at }) => at)).toEqual([3]);
    expect(left.nodes).toEqual([]);
  });

  it('keeps a restart as long as it explains an install', () => {
    const restarts = [5, 15].map((at) => ({ base: 'b', at }));
    expect(withoutPast({ ...LIFE, restarts }, 1_000).restarts).toEqual([{ base: 'b', at: 15 }]);
  });

  it('judges nothing that came later than asked', () => {
    const command = { replica: 'a', base: 'b', command: 'health', module: '' };
    const commands = [100, 200].map((at) => ({ ...command, at }));
    expect(judgedUntil({ ...NO_FACTS, commands }, 150).commands.map(({ at }) => at)).toEqual([100]);
  });
});

function nodeOf(ready: string, over: Partial<NodeFact> = {}): (at: number) => NodeFact {
  return (at) => ({ name: 'vnode.b', uid: 'u', ready, reason: '', at, isGone: false, ...over });
}

describe('a Node that is not Ready', () => {
  const all = { since: 0, until: Infinity };
  const [isReady, isUnready, isGone] = [nodeOf('True'), nodeOf('False'), nodeOf('False', { isGone: true })];
  const away = [{ base: 'b', from: 100_000, to: 190_000 }];

  it('is a violation once it was Ready, and when it is gone', () => {
    expect(unexplainedNodes([isUnready(1), isReady(2), isUnready(3)], [], all).map(({ at }) => at)).toEqual([3]);
    expect(unexplainedNodes([isReady(2), isGone(3)], [], all).map(({ text }) => text)).toEqual(['vnode.b was deleted']);
  });

  it('is explained by a base that has been away for long enough, until shortly after it is back', () => {
    const at = (ms: number) => unexplainedNodes([isReady(1), isUnready(ms)], away, all).length;
    expect([99_000, 105_000, 120_000, 195_000, 210_000].map(at)).toEqual([1, 1, 0, 0, 1]);
  });

  it('is gone only after a minute without its base', () => {
    const at = (ms: number) => unexplainedNodes([isReady(1), isUnready(120_000), isGone(ms)], away, all).length;
    expect([130_000, 155_000].map(at)).toEqual([1, 0]);
  });

  it('may be made anew when the base is back', () => {
    const nodes = [isReady(1), isGone(160_000), isUnready(191_000), isReady(192_000)];
    expect(unexplainedNodes(nodes, away, all)).toEqual([]);
  });

  it('is told once: what was judged before is known', () => {
    const nodes = [isReady(1), isUnready(3), isUnready(50)];
    expect(unexplainedNodes(nodes, [], { since: 3, until: 10 })).toEqual([]);
  });
});

describe('the end state', () => {
  it('names Nodes of the dead, and those that are missing', () => {
    expect(nodeDifferences(['vnode.a', 'vnode.b'], ['b', 'c'])).toEqual([
      'vnode.a is there, its base is dead',
      'vnode.c is missing, its base lives',
    ]);
  });

  it('names modules that are missing, wanted by nobody, or there too often', () => {
    expect(moduleDifferences({ n: ['a', 'b'] }, { n: ['b', 'b'], m: ['c'] })).toEqual([
      'm: c is not wanted',
      'n: a is missing',
      'n: b is not wanted',
    ]);
    expect(moduleDifferences({ n: ['a'] }, { n: ['a'] })).toEqual([]);
  });
});
