import { describe, expect, it } from 'vitest';
import type { KubeObject, PodStatus } from '../../../../src/kube/objects.ts';
import {
  exitReasonOf,
  isSameLivePod,
  moduleKeyOfLabels,
  projectCatalogPod,
} from '../../../../src/platform/catalog/catalog-pod.ts';
import {
  missingPods,
  patchOf,
  type RecordInput,
  recordChange,
  urgencyOf,
} from '../../../../src/platform/catalog/record/exited-pods.ts';
import {
  type ExitedPod,
  type ExitedRecordObject,
  type ExitedRecordStatus,
  MAX_LIVE,
  projectExitedRecord,
} from '../../../../src/platform/catalog/record/exited-record.ts';
import { applyOperation } from '../../../support/fake-objects.ts';

const CREATED = '2026-11-28T10:00:00Z';
const GONE = '2026-11-28T11:00:00Z';

/** A Pod of the Module shop-cart, as the API server has it. */
function podOf(name: string, status: PodStatus = {}, createTime = CREATED): KubeObject {
  const labels = {
    'virtual-kubelet.koupleless.io/component': 'module',
    'platform.koupleless.io/app': 'Shop',
    'module.koupleless.io/name': 'cart',
    'platform.koupleless.io/release': 'r1',
  };
  const metadata = { name, namespace: 'a', uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: createTime };
  return {
    metadata: { ...metadata, labels },
    spec: { nodeName: 'vnode.b1', containers: [] },
    status: { hostIP: '10.0.0.1', podIP: '10.0.0.1', ...status },
  } as never;
}

const cached = (...args: Parameters<typeof podOf>) => projectCatalogPod(podOf(...args));
const exitOf = (name: string): ExitedPod => ({ uid: `uid-${name}`, name, createTime: CREATED, deleteTime: GONE });
const namesOf = (pods: readonly { name: string }[]): string => pods.map(({ name }) => name).join(' ');

function waiting(reason: string, message?: string): PodStatus {
  const state = { waiting: { reason, ...(message !== undefined && { message }) } };
  return { containerStatuses: [{ name: 'cart', image: 'i', imageID: '', ready: false, restartCount: 0, state }] };
}

interface Case extends Partial<Omit<RecordInput, 'before'>> {
  readonly before?: ExitedRecordStatus | undefined;
}

function recordOf(status: ExitedRecordStatus | undefined): ExitedRecordObject {
  const metadata = { name: 'shop-cart', namespace: 'a', resourceVersion: '7' };
  return { metadata, spec: { app: 'Shop', module: 'cart' }, ...(status && { status }) };
}

const recordedIn = (status: ExitedRecordStatus | undefined) => projectExitedRecord(recordOf(status)).recorded;

const changeOf = ({ before, ...input }: Case) =>
  recordChange({ before: recordedIn(before), pods: [], exits: [], limit: 10, ...input });

/** The status after the patch. */
function decide(input: Case): ExitedRecordStatus {
  const record = structuredClone(recordOf(input.before));
  for (const operation of patchOf(projectExitedRecord(record), changeOf(input))) applyOperation(record, operation);
  return record.status as ExitedRecordStatus;
}

const urgency = (input: Case) => urgencyOf(recordedIn(input.before), changeOf(input));

describe('the part of a Pod that is kept', () => {
  it('has the base, the release and the Module', () => {
    expect(cached('x')).toEqual({
      namespace: 'a',
      name: 'x',
      uid: 'uid-x',
      resourceVersion: '1',
      module: 'a/Shop/cart',
      isDeleting: false,
      id: 'r1',
      node: 'vnode.b1',
      nodeIP: '10.0.0.1',
      podIP: '10.0.0.1',
      createTime: CREATED,
      exit: undefined,
      problem: { reason: 'NotPodScheduled' },
    });
    expect(moduleKeyOfLabels('a/Shop/cart')).toBe('a/shop-cart');
  });

  it('belongs to no Module without the label of the module', () => {
    const pod = podOf('x');
    expect(projectCatalogPod({ ...pod, metadata: { ...pod.metadata, labels: {} } }).module).toBeUndefined();
  });

  it.each([
    ['node', { nodeIP: '10.0.0.2' }, false],
    ['reason', { exit: { reason: 'Error' } }, true],
    ['release', { id: 'r2' }, false],
    ['version', { resourceVersion: '2' }, true],
  ])('changes a record with its %s: %s', (_what, change, isSame) => {
    expect(isSameLivePod(cached('x'), { ...cached('x'), ...change })).toBe(isSame);
  });
});

describe('the reason of an exit', () => {
  it.each<[string, PodStatus, object | undefined]>([
    ['nothing of a Pod that runs', { phase: 'Running' }, undefined],
    [
      'nothing that a condition says besides',
      {
        conditions: [
          { type: 'Ready', status: 'False', reason: 'ContainersNotReady' },
          { type: 'PodScheduled', status: 'True', reason: 'Scheduled' },
          { type: 'DisruptionTarget', status: 'False', reason: 'None' },
        ],
      },
      undefined,
    ],
    ['nothing of an install that has only begun', waiting('ContainerCreating'), undefined],
    ['the failure of a module', waiting('ErrImagePull', 'no jar'), { reason: 'ErrImagePull', message: 'no jar' }],
    ['a reason without a message', waiting('InstallTimeout'), { reason: 'InstallTimeout' }],
    [
      'how a container has ended, before what a condition says',
      {
        conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'drained' }],
        containerStatuses: [
          {
            name: 'cart',
            image: 'i',
            imageID: '',
            ready: false,
            restartCount: 0,
            state: { terminated: { exitCode: 1, reason: 'Error', message: 'no memory' } },
          },
        ],
      },
      { reason: 'Error', message: 'no memory' },
    ],
    [
      'what the Pod itself says, first of all',
      { ...waiting('ErrImagePull'), reason: 'BaseUnreachable', message: 'silent' },
      { reason: 'BaseUnreachable', message: 'silent' },
    ],
    [
      'an eviction',
      { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'by x' }] },
      { reason: 'EvictionByEvictionAPI', message: 'by x' },
    ],
    [
      'that no base fits',
      { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }] },
      { reason: 'Unschedulable', message: '0/3 nodes' },
    ],
  ])('is %s', (_what, status, expected) => {
    expect(exitReasonOf(status)).toEqual(expected);
  });

  it('has a message of at most 1 KiB, cut between two characters', () => {
    const messageOf = (text: string) => exitReasonOf(waiting('Error', text))?.message ?? '';
    expect(messageOf('x'.repeat(1024))).toBe('x'.repeat(1024));
    for (const start of ['', 'x', 'xx', 'xxx']) {
      const message = messageOf(start + '😀'.repeat(300));
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
      expect(Buffer.byteLength(message)).toBeGreaterThan(1016);
      expect(message).toMatch(/^x*(😀)+…$/u);
    }
    expect(exitReasonOf(waiting('R'.repeat(500)))?.reason).toHaveLength(126);
  });
});

describe('the status of a record', () => {
  it('has the Pod that went last in front', () => {
    const before = decide({ exits: [exitOf('a'), exitOf('b')] });
    const next = decide({ before, exits: [exitOf('c'), exitOf('d')] });
    expect([namesOf(before.pods), namesOf(next.pods), next.exited]).toEqual(['b a', 'd c b a', 4]);
  });

  it('has each UID once, whatever is reported again', () => {
    const exits = [exitOf('a'), exitOf('b'), exitOf('a')];
    const before = decide({ exits });
    const next = decide({ before, exits: [...exits, exitOf('c')] });
    expect([namesOf(next.pods), next.exited]).toEqual(['c b a', 3]);
  });

  it('has no entry of a Pod that lives', () => {
    const status = decide({ pods: [cached('a')], exits: [exitOf('a'), exitOf('b')] });
    expect([namesOf(status.pods), namesOf(status.live)]).toEqual(['b', 'a']);
  });

  it('takes a new Pod with a former name for another one', () => {
    const before = decide({ exits: [exitOf('a')] });
    const again = { ...exitOf('a'), uid: 'other' };
    expect(decide({ before, exits: [again] }).pods.map(({ uid }) => uid)).toEqual(['other', 'uid-a']);
  });

  it('keeps the limit, and gets shorter with it', () => {
    const exits = Array.from({ length: 100 }, (_, index) => exitOf(`p${index}`));
    const before = decide({ exits, limit: 48 });
    expect([before.pods.length, before.pods[0]?.name, before.pods[47]?.name]).toEqual([48, 'p99', 'p52']);
    const shorter = decide({ before, limit: 10 });
    expect([shorter.pods.length, shorter.exited]).toEqual([10, 100]);
    expect(urgency({ before, limit: 10 })).toBe('Exits');
  });

  it('has the newest Pods that live, in one order', () => {
    const pods = Array.from({ length: MAX_LIVE + 10 }, (_, index) =>
      cached(`p${index}`, {}, `2026-11-28T10:${String(index % 60).padStart(2, '0')}:00Z`),
    );
    const status = decide({ pods });
    expect(status.live).toHaveLength(MAX_LIVE);
    expect(status.live[0]?.createTime).toBe('2026-11-28T10:59:00Z');
    expect(decide({ pods: [...pods].reverse() }).live).toEqual(status.live);
    expect(urgency({ before: status, pods: [...pods].reverse() })).toBe('None');
  });

  it('is smaller than 500 kB, however long its texts are', () => {
    const long = { name: 'n'.repeat(253), node: 'n'.repeat(253), id: 'i'.repeat(63), nodeIP: '1'.repeat(39) };
    const message = exitReasonOf(waiting('r'.repeat(500), '😀'.repeat(1000)));
    const exits = Array.from({ length: 150 }, (_, index) => ({
      ...exitOf(`p${index}`),
      ...long,
      ...message,
      uid: `${'u'.repeat(32)}${index}`,
    }));
    const pods = Array.from({ length: 300 }, (_, index) => ({
      ...cached('x'),
      ...long,
      uid: `${'v'.repeat(32)}${index}`,
    }));
    const bytes = Buffer.byteLength(JSON.stringify(decide({ exits, pods, limit: 100 })));
    expect(bytes).toBeGreaterThan(200_000);
    expect(bytes).toBeLessThan(500_000);
  });
});

describe('Pods that went while nobody looked', () => {
  it('are those that lived, and that nothing is known of', () => {
    const lived = ['a', 'b', 'c', 'd'].map((name, index) => cached(name, {}, `2026-11-28T10:0${index}:00Z`));
    const before = recordedIn(decide({ pods: lived }));
    const found = missingPods({ before, pods: [cached('b')], exits: [exitOf('c')] });
    expect(namesOf(found)).toBe('a d');
    expect(found[0]).toMatchObject({ id: 'r1', node: 'vnode.b1', podIP: '10.0.0.1' });
  });

  it('are none without a record', () => {
    expect(missingPods({ before: undefined, pods: [], exits: [] })).toEqual([]);
  });
});

describe('a write', () => {
  const unbound = { ...cached('a'), node: undefined };

  it.each<[string, Case, string]>([
    ['no record and no Pod', {}, 'None'],
    ['the first Pod', { pods: [cached('a')] }, 'Live'],
    ['an exit without a record', { exits: [exitOf('a')] }, 'Exits'],
    ['the same again', { before: decide({ pods: [cached('a')] }), pods: [cached('a')] }, 'None'],
    ['a Pod that has got a base', { before: decide({ pods: [unbound] }), pods: [cached('a')] }, 'Live'],
    ['an exit', { before: decide({ pods: [cached('a')] }), exits: [exitOf('a')] }, 'Exits'],
    ['an exit that is known', { before: decide({ exits: [exitOf('a')] }), exits: [exitOf('a')] }, 'None'],
  ])('of %s is as urgent as it should be', (_what, input, expected) => {
    expect(urgency(input)).toBe(expected);
  });

  it('sends no entry again, and is for the version that it was decided from', () => {
    const before = decide({ exits: Array.from({ length: 10 }, (_, index) => exitOf(`p${index}`)) });
    const operations = patchOf(projectExitedRecord(recordOf(before)), changeOf({ before, exits: [exitOf('q')] }));
    expect(operations).toEqual([
      { op: 'replace', path: '/metadata/resourceVersion', value: '7' },
      { op: 'remove', path: '/status/pods/9' },
      { op: 'add', path: '/status/pods/0', value: exitOf('q') },
      { op: 'replace', path: '/status/exited', value: 11 },
    ]);
  });
});
