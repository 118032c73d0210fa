import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodObject } from '../../../src/kube/objects.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL } from '../../../src/labels.ts';
import { makeBase } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const QUESTION = 'find pods';

let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig({ namesBasePods: true });
  await rig.start();
});

afterEach(() => rig.stop());

/** Pods that the controller does not watch. */
function addPodAt(podIP: string, name: string, labels: Record<string, string> = {}): void {
  const pod: PodObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels },
    spec: { containers: [] },
    status: { phase: 'Running', podIP },
  };
  rig.api.objects.set(`pod shop/${name}`, pod);
}

function basePodOf(identity: string): string | undefined {
  return rig.api.node(`vnode.${identity}`)?.metadata.annotations?.[ANNOTATION.basePod];
}

function questions(): number {
  return rig.api.take(QUESTION).length;
}

/** `198.51.100.1` is the address of the first base. */
describe('the Pod that a base runs in', () => {
  it('is named by the Node, and is asked for once', async () => {
    addPodAt('198.51.100.1', 'base-x');
    addPodAt('198.51.100.2', 'another');
    await rig.foundBase('b1');
    expect(basePodOf('b1')).toBeUndefined();
    await rig.pass(10_000);
    expect(basePodOf('b1')).toBe('shop/base-x');
    expect(questions()).toBe(1);
    await rig.pass(600_000);
    expect(questions()).toBe(0);
  });

  it('is not asked for where nobody wants it', async () => {
    await rig.stop();
    rig = new CoreRig();
    await rig.start();
    addPodAt('198.51.100.1', 'base-x');
    await rig.foundBase('b1');
    await rig.pass(600_000);
    expect([questions(), basePodOf('b1')]).toEqual([0, undefined]);
  });

  it('is not told where no Pod has the address, or more than one has it; nor is it asked for again', async () => {
    addPodAt('198.51.100.2', 'one');
    addPodAt('198.51.100.2', 'two');
    await rig.foundBase('b1');
    await rig.foundBase('b2');
    await rig.pass(600_000);
    expect([basePodOf('b1'), basePodOf('b2')]).toEqual([undefined, undefined]);
    expect(questions()).toBe(2);
  });

  it('is not one that runs modules', async () => {
    addPodAt('198.51.100.1', 'module', { [COMPONENT_LABEL]: COMPONENT.module });
    addPodAt('198.51.100.1', 'base-x');
    await rig.foundBase('b1');
    await rig.pass(10_000);
    expect(basePodOf('b1')).toBe('shop/base-x');
  });

  it('is asked for again when the question failed: that nobody answered does not mean that there is none', async () => {
    addPodAt('198.51.100.1', 'base-x');
    rig.api.fail(QUESTION, 500, 3);
    await rig.foundBase('b1');
    await rig.pass(60_000);
    expect(basePodOf('b1')).toBe('shop/base-x');
    expect(questions()).toBe(4);
  });

  it('is asked for when the API server has little to do', async () => {
    addPodAt('198.51.100.1', 'base-x');
    rig.traffic.isCalm = false;
    await rig.foundBase('b1');
    await rig.pass(60_000);
    expect(questions()).toBe(0);
    rig.traffic.isCalm = true;
    await rig.pass(10_000);
    expect(basePodOf('b1')).toBe('shop/base-x');
  });

  it('is another one when the base comes back with another address', async () => {
    addPodAt('198.51.100.1', 'base-x');
    addPodAt('198.51.100.77', 'base-y');
    await rig.foundBase('b1');
    await rig.pass(20_000);
    const base = rig.bases.get('b1');
    if (base === undefined) throw new Error('no base');
    base.info = makeBase('b1', { ip: '198.51.100.77' });
    rig.api.fail(QUESTION, 500, 3);
    rig.heartbeat('b1');
    await rig.pass(0);
    expect(basePodOf('b1')).toBeUndefined();
    await rig.pass(20_000);
    expect(basePodOf('b1')).toBe('shop/base-y');
  });

  it('is asked for again when the base was given up during the question, and has come back', async () => {
    addPodAt('198.51.100.1', 'base-x');
    const turn = Promise.withResolvers<void>();
    rig.api.delay = (request) => (request.startsWith(QUESTION) ? turn.promise : undefined);
    const base = await rig.foundBase('b1');
    await rig.pass(10_000);
    base.isSilent = true;
    await rig.pass(70_000);
    expect(rig.api.node('vnode.b1')).toBeUndefined();
    base.isSilent = false;
    rig.heartbeat('b1');
    await rig.pass(2_000);
    turn.resolve();
    await rig.pass(20_000);
    expect(basePodOf('b1')).toBe('shop/base-x');
    expect(questions()).toBe(2);
  });

  it('is not asked for where the Node names it already', async () => {
    addPodAt('198.51.100.1', 'base-x');
    await rig.foundBase('b1');
    await rig.pass(20_000);
    questions();
    rig.nodes.onLeaderChange('vnode.b1');
    const vnode = rig.store.get('vnode.b1');
    if (vnode === undefined) throw new Error('no VNode');
    vnode.process.foundIn(undefined);
    rig.nodes.enqueue('vnode.b1');
    await rig.pass(60_000);
    expect(questions()).toBe(0);
    expect(basePodOf('b1')).toBe('shop/base-x');
  });

  it('is asked for five bases at a time', async () => {
    found(12, addPodAt);
    await rig.pass(7_000);
    expect(questions()).toBe(5);
    await rig.pass(600_000);
    expect(questions()).toBe(7);
    expect([...rig.bases.keys()].map(basePodOf)).toEqual([...rig.bases.keys()].map((name) => `shop/of-${name}`));
  });

  it('is asked for once an hour after five bases that run in none', async () => {
    found(12);
    await rig.pass(3_500_000);
    expect(questions()).toBe(5);
    await rig.pass(3_600_000);
    expect(questions()).toBe(1);
  });
});

/** So many bases at once, each in a Pod where there is one to add. */
function found(count: number, addPod?: (ip: string, name: string) => void): void {
  for (let number = 1; number <= count; number++) {
    const { info } = rig.base(`b${number}`);
    addPod?.(info.ip, `of-b${number}`);
    rig.heartbeat(`b${number}`);
  }
}
