import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/logger.ts';
import { LatePods } from '../../../src/vnode/late-pods.ts';
import { makePodObject } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
  await rig.foundBase('b1', { isSilent: false });
});

afterEach(() => rig.stop());

/** The base falls silent and is given up, Node and all. */
async function giveUp(): Promise<void> {
  const base = rig.bases.get('b1');
  if (base) base.isSilent = true;
  await rig.pass(65_000);
  expect(rig.api.node('vnode.b1')).toBeUndefined();
}

describe('a Pod that the scheduler binds to a Node after we have deleted it', () => {
  it('goes at once, so that its owner makes another one', async () => {
    await giveUp();
    rig.addPod({ name: 'late', node: 'vnode.b1' });
    await rig.pass(0);
    expect(rig.api.pod('late')).toBeUndefined();
  });

  it('stays when the base has come back under the name', async () => {
    await giveUp();
    const base = rig.bases.get('b1');
    if (base) base.isSilent = false;
    await rig.pass(15_000);
    rig.addPod({ name: 'welcome', node: 'vnode.b1' });
    await rig.pass(5_000);
    expect(rig.podState('welcome')).toBe('Running True');
  });

  describe('and whose deletion waits to be sent', () => {
    /** The Pod comes; its deletion leaves when the returned function is called, if it may. */
    async function addLate(): Promise<() => void> {
      const turn = Promise.withResolvers<void>();
      rig.api.delay = (request) => (request.startsWith('delete pod') ? turn.promise : undefined);
      rig.addPod({ name: 'late', node: 'vnode.b1' });
      await rig.pass(0);
      return turn.resolve;
    }

    it('stays when the base is heard again by then', async () => {
      await giveUp();
      const send = await addLate();
      const base = rig.bases.get('b1');
      if (base) base.isSilent = false;
      rig.heartbeat('b1');
      send();
      await rig.pass(5_000);
      expect(rig.podState('late')).toBe('Running True');
    });

    it('stays when this replica may lead nothing by then', async () => {
      await rig.stop();
      rig = new CoreRig({ isCluster: true });
      await rig.start();
      await rig.foundBase('b1');
      await rig.pass(2_000);
      await giveUp();
      const send = await addLate();
      rig.membership.valid = false;
      send();
      await rig.pass(5_000);
      expect(rig.api.pod('late')).toBeDefined();
    });
  });

  it('is left to Kubernetes when the Node has been gone for long, or never was one of ours', async () => {
    await giveUp();
    await rig.pass(130_000);
    rig.addPod({ name: 'later', node: 'vnode.b1' });
    rig.addPod({ name: 'other', node: 'vnode.other' });
    await rig.pass(5_000);
    expect(rig.api.pod('later')).toBeDefined();
    expect(rig.api.pod('other')).toBeDefined();
  });
});

describe('a Node that is removed twice', () => {
  it('keeps no other one from being forgotten in time', async () => {
    const late = latePods();
    const running = late.pods.run(late.stop.signal);
    late.pods.noteRemoval('vnode.b7');
    await rig.clock.advanceAsync(60_000);
    late.pods.noteRemoval('vnode.b8');
    await rig.clock.advanceAsync(50_000);
    late.pods.noteRemoval('vnode.b7');
    await rig.clock.advanceAsync(71_000);
    rig.podInformer.deliver({ type: 'PUT', object: makePodObject({ name: 'of-b8', node: 'vnode.b8' }) });
    rig.podInformer.deliver({ type: 'PUT', object: makePodObject({ name: 'of-b7', node: 'vnode.b7' }) });
    await rig.clock.advanceAsync(0);
    expect(late.deleted).toEqual(['of-b7']);
    late.stop.abort();
    await running;
  });

  function latePods() {
    const deleted: string[] = [];
    const { clock, nodeInformer: informer, podInformer, store, metrics } = rig;
    const pods = new LatePods({
      api: {
        getNode: (name) => rig.api.getNode(name),
        forceDeletePod: async (_namespace, name) => {
          deleted.push(name);
        },
      },
      leadership: { isMember: () => true },
      informer,
      podInformer,
      store,
      clock,
      metrics,
      logger: silentLogger,
    });
    return { pods, deleted, stop: new AbortController() };
  }
});
