import { describe, expect, it } from 'vitest';
import type { NodeSelectorRequirement, Toleration } from '../../../src/kube/objects.ts';
import { memoryRequestOf } from '../../../src/kube/placement.ts';
import { quantityOf } from '../../../src/kube/quantity.ts';
import { ANNOTATION } from '../../../src/labels.ts';
import { type AdmittingNode, rejectionsOf } from '../../../src/pod/pod-admission.ts';
import { PodMemory } from '../../../src/pod/pod-memory.ts';
import type { VPod } from '../../../src/pod/vpod.ts';
import { nodeTaintsOf } from '../../../src/vnode/node-object.ts';
import { makePod, type PodOptions, runningStatus } from '../../support/builders.ts';

const NODE: AdmittingNode = {
  namespace: '',
  name: 'vnode.b1',
  uid: 'n1',
  resourceVersion: '1',
  labels: { zone: 'a', size: '7' },
  annotations: {},
  taints: nodeTaintsOf('dev'),
  allocatable: { pods: '3', memory: '102400Ki' },
};
const SCHEDULED = { type: 'PodScheduled', status: 'True' as const };
const at = (second: number): string => `2026-01-01T00:00:0${second}Z`;

/** Of each Pod, in the order given: its reason, or undefined. */
function judged(pods: readonly VPod[], node: Partial<AdmittingNode> = {}): (string | undefined)[] {
  const rejections = rejectionsOf({
    pods,
    node: { ...NODE, ...node },
    isCandidate: (pod) => pod.placement !== undefined && !pod.isDeleting,
    isOutside: () => false,
  });
  return pods.map((pod) => rejections.get(pod)?.reason);
}

const reasonOf = (options: PodOptions, node: Partial<AdmittingNode> = {}) => judged([makePod(options)], node)[0];

describe('a Pod that is bound by nodeName', () => {
  it('is admitted where it fits', () => {
    expect(reasonOf({ memory: '100Mi', spec: { nodeSelector: { zone: 'a' } } })).toBeUndefined();
  });

  it('is not admitted where its nodeSelector does not match', () => {
    expect(reasonOf({ spec: { nodeSelector: { zone: 'b' } } })).toBe('NodeAffinity');
    expect(reasonOf({ spec: { nodeSelector: { toString: 'x' } } })).toBe('NodeAffinity');
  });

  const term = (key: string, operator: string, ...values: string[]) => ({ key, operator, values });
  it.each<[string, NodeSelectorRequirement[], boolean]>([
    ['In', [term('zone', 'In', 'b', 'a')], true],
    ['In, another', [term('zone', 'In', 'b')], false],
    ['NotIn', [term('zone', 'NotIn', 'b')], true],
    ['NotIn, absent', [term('none', 'NotIn', 'b')], true],
    ['NotIn, it is', [term('zone', 'NotIn', 'a')], false],
    ['Exists', [term('zone', 'Exists')], true],
    ['Exists, absent', [term('none', 'Exists')], false],
    ['DoesNotExist', [term('none', 'DoesNotExist')], true],
    ['DoesNotExist, present', [term('zone', 'DoesNotExist')], false],
    ['Gt', [term('size', 'Gt', '6')], true],
    ['Gt, equal', [term('size', 'Gt', '7')], false],
    ['Lt', [term('size', 'Lt', '10')], true],
    ['Lt, no number', [term('zone', 'Lt', '10')], false],
    ['unknown', [term('zone', 'Near', 'a')], false],
    ['all of a term', [term('zone', 'In', 'a'), term('size', 'In', '8')], false],
    ['none', [], false],
  ])('is admitted by its required affinity: %s', (_, matchExpressions, isAdmitted) => {
    const affinityOf = (...nodeSelectorTerms: object[]) => ({
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    });
    const reason = isAdmitted ? undefined : 'NodeAffinity';
    expect(reasonOf({ spec: affinityOf({ matchExpressions }) })).toBe(reason);
    // One term of several is enough.
    const byName = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['vnode.b1'] }] };
    expect(reasonOf({ spec: affinityOf({ matchExpressions }, byName) })).toBeUndefined();
    const byOther = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['vnode.b2'] }] };
    expect(reasonOf({ spec: affinityOf({ matchExpressions }, byOther) })).toBe(reason);
  });

  it.each<[string, Toleration[], boolean]>([
    ['none', [], false],
    ['everything', [{ operator: 'Exists' }], true],
    ['by key', [{ key: 'a', operator: 'Exists' }], true],
    ['by key and value', [{ key: 'a', value: 'b', effect: 'NoExecute' }], true],
    ['another value', [{ key: 'a', operator: 'Equal', value: 'c' }], false],
    ['another key', [{ key: 'x', operator: 'Exists' }], false],
    ['another effect', [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }], false],
  ])('tolerates NoExecute taints, others do not matter: %s', (_, tolerations, isAdmitted) => {
    const taints = [
      { key: 'cordon', effect: 'NoSchedule' },
      { key: 'a', value: 'b', effect: 'NoExecute' },
    ];
    expect(reasonOf({ spec: { tolerations } }, { taints })).toBe(isAdmitted ? undefined : 'TaintToleration');
  });

  it('is told which taint it does not tolerate, also one without a value', () => {
    const messageFor = (value?: string): string | undefined => {
      const pod = makePod({});
      const taints = [{ key: 'a', effect: 'NoExecute', ...(value && { value }) }];
      const input = { pods: [pod], node: { ...NODE, taints }, isCandidate: () => true, isOutside: () => false };
      return rejectionsOf(input).get(pod)?.message;
    };
    expect(messageFor('b')).toContain('taint a=b:NoExecute');
    expect(messageFor()).toContain('taint a=:NoExecute');
  });

  it('has to fit beside the admitted Pods, oldest first, whatever the order of the list', () => {
    const ran = makePod({
      memory: '50Mi',
      createdAt: at(9),
      status: { containerStatuses: [runningStatus('biz1:1.0.0')] },
    });
    const older = makePod({ memory: '40Mi', createdAt: at(1) });
    const big = makePod({ memory: '20Mi', createdAt: at(2) });
    const small = makePod({ memory: '10Mi', createdAt: at(3) });
    expect(judged([small, big, ran, older])).toEqual([undefined, 'OutOfmemory', undefined, undefined]);
    expect(judged([older, ran, small, big].reverse())).toEqual(['OutOfmemory', undefined, undefined, undefined]);
  });

  it('takes one of the places of the Node', () => {
    const pods = [1, 2, 3, 4].map((second) => makePod({ createdAt: at(second) }));
    expect(judged(pods)).toEqual([undefined, undefined, undefined, 'OutOfpods']);
    const ended = makePod({ createdAt: at(0), status: { phase: 'Failed' } });
    expect(judged([...pods.slice(0, 3), { ...ended, placement: undefined }])).toEqual(Array(4).fill(undefined));
  });

  it('is not short of memory that it does not request, or that the base has without limit', () => {
    const full = makePod({ memory: '200Mi', status: { conditions: [SCHEDULED] } });
    expect(judged([full, makePod()])).toEqual([undefined, undefined]);
    const unlimited = { allocatable: { pods: '9' }, annotations: { [ANNOTATION.metaspaceUsed]: '1Ki' } };
    expect(reasonOf({ memory: '1Ti' }, unlimited)).toBeUndefined();
    expect(reasonOf({ memory: '1Ki' }, { ...unlimited, annotations: {} })).toBe('OutOfmemory');
  });
});

describe('what a Pod shows', () => {
  it('says that it was admitted: bound by a scheduler, or started once', () => {
    const waiting = (reason: string) => runningStatus('biz1:1.0.0', { state: { waiting: { reason } } });
    const placed = (status: NonNullable<PodOptions['status']>) => makePod({ status }).placement !== undefined;
    expect(placed({})).toBe(true);
    expect(placed({ containerStatuses: [waiting('OutOfmemory')] })).toBe(true);
    expect(placed({ conditions: [{ ...SCHEDULED, status: 'False' }] })).toBe(true);
    expect(placed({ conditions: [SCHEDULED] })).toBe(false);
    expect(placed({ containerStatuses: [waiting('ContainerCreating')] })).toBe(false);
    expect(placed({ containerStatuses: [runningStatus('biz1:1.0.0')] })).toBe(false);
  });
});

describe('PodMemory', () => {
  const big = makePod({ memory: '200Mi', uid: 'big' });

  it('never judges an admitted Pod again, before its status says so', () => {
    const admissions = new PodMemory(0);
    const pod = makePod({ memory: '100Mi' });
    const full = { ...NODE, allocatable: { memory: '1Ki' } };
    expect(admissions.judge('vnode.b1', [pod], NODE, 0).size).toBe(0);
    expect(admissions.judge('vnode.b1', [pod], full, 1).size).toBe(0);
    expect(new PodMemory(0).judge('vnode.b1', [pod], full, 1).size).toBe(1);
  });

  it('judges an admitted Pod again when another replica has led its base meanwhile', () => {
    const admissions = new PodMemory(0);
    const pod = makePod({ memory: '100Mi' });
    const full = { ...NODE, allocatable: { memory: '1Ki' } };
    admissions.judge('vnode.b1', [pod], NODE, 0);
    admissions.forgetNode('vnode.b1', [pod]);
    expect(admissions.judge('vnode.b1', [pod], full, 1).size).toBe(1);
  });

  it('holds a Pod without a reason while nobody knows its Node', () => {
    const held = new PodMemory(0).judge('vnode.b1', [makePod({ uid: 'u' })], undefined, 0);
    expect([...held]).toEqual([['u', undefined]]);
  });

  it('looks again after a wait that grows, and not sooner because it looked meanwhile', () => {
    const admissions = new PodMemory(0);
    const waits: (number | undefined)[] = [];
    for (let now = 0; now < 900_000; now += 5_000) {
      admissions.judge('vnode.b1', [big], NODE, now);
      waits.push(admissions.wakeAt('vnode.b1'));
    }
    expect([...new Set(waits)]).toEqual([10, 30, 70, 150, 310, 610, 910].map((seconds) => seconds * 1000));
    admissions.judge('vnode.b1', [], NODE, 900_000);
    expect(admissions.wakeAt('vnode.b1')).toBeUndefined();
    expect(admissions.isAwaited('vnode.b1')).toBe(false);
  });

  it('judges the others too when one of them leaves before it was judged', () => {
    const leaving = makePod({ uid: 'leaving', deleting: true });
    expect([...new PodMemory(0).judge('vnode.b1', [leaving, big], NODE, 0).keys()]).toEqual(['big']);
  });

  it('knows that nothing is left of a Pod whose status says that it waited, though another process held it', () => {
    const waiting = runningStatus('biz1:1.0.0', { state: { waiting: { reason: 'OutOfmemory' } } });
    const held = makePod({ uid: 'held', status: { containerStatuses: [waiting] } });
    const memory = new PodMemory(0);
    expect([memory.forget(held), memory.forget(makePod({ uid: 'new' }))]).toEqual([false, true]);
  });

  it('keeps a held Pod out, and its request, while it is being deleted', () => {
    const admissions = new PodMemory(0);
    admissions.judge('vnode.b1', [big], NODE, 0);
    const leaving = { ...big, isDeleting: true };
    const held = admissions.judge('vnode.b1', [leaving, makePod({ memory: '100Mi' })], NODE, 1);
    expect([...held.keys()]).toEqual(['big']);
    expect(admissions.wakeAt('vnode.b1')).toBeUndefined();
  });
});

describe('memory requests', () => {
  it.each([
    ['1', 1],
    ['1.5Gi', 1.5 * 1024 ** 3],
    ['128e3', 128_000],
    ['1E', 1e18],
    ['2k', 2_000],
    ['500m', 0.5],
    ['', undefined],
    ['1KB', undefined],
    ['x', undefined],
  ])('are quantities: %s', (text, expected) => {
    expect(quantityOf(text)).toBe(expected);
  });

  it('are those of a kubelet: containers, sidecars, the largest init container, overhead', () => {
    const of = (memory: string) => ({ resources: { requests: { memory } } });
    const container = (memory: string) => ({ name: 'c', ...of(memory) });
    const sidecar = { ...of('5'), restartPolicy: 'Always' };
    expect(memoryRequestOf({ containers: [container('10'), { name: 'd' }] })).toBe(10);
    expect(memoryRequestOf({ containers: [container('10')], initContainers: [sidecar, of('3')] })).toBe(15);
    expect(memoryRequestOf({ containers: [container('10')], initContainers: [sidecar, of('30')] })).toBe(35);
    expect(memoryRequestOf({ containers: [container('10')], overhead: { memory: '2' } })).toBe(12);
    expect(memoryRequestOf({ containers: [container('10')], ...of('100') })).toBe(100);
  });
});
