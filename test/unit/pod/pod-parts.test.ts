import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../src/module/module-record.ts';
import { containerModulesOf, moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import { podEventsOf } from '../../../src/pod/pod-events.ts';
import { podStatusPatchOf } from '../../../src/pod/pod-status-patch.ts';
import { byCreation, projectPod } from '../../../src/pod/vpod.ts';
import { makePod, makePodObject, runningStatus } from '../../support/builders.ts';
import { statusAt, viewOf } from './status-story.ts';

describe('the modules of a Pod', () => {
  it('are its containers: name, BIZ_VERSION, image, args and other env', () => {
    const pod = makePod({ args: ['--a', '--b'], env: [{ name: 'COLOR', value: 'blue' }, { name: 'EMPTY' }] });
    expect(moduleSpecsOf(pod)).toEqual([
      {
        name: 'biz1',
        version: '1.0.0',
        url: 'https://jars.example/biz1-1.0.0.jar',
        args: ['--a', '--b'],
        envs: { COLOR: 'blue', EMPTY: '' },
      },
    ]);
  });

  it.each(['file:///opt/a.jar', 'https://h/a.jar?token=x', 'a.jar'])('may come from %s', (url) => {
    expect(containerModulesOf(makePod({ url }))[0]?.kind).toBe('module');
  });

  it.each(['nginx:1', ''])('are not what has the image %j', (url) => {
    expect(containerModulesOf(makePod({ url }))[0]?.kind).toBe('unsupported');
  });

  it('cannot be told without a version, and the Pod is told what is missing', () => {
    const [entry] = containerModulesOf(makePod({ modules: ['biz1:'] }));
    expect(entry).toMatchObject({ kind: 'invalid', message: expect.stringContaining('BIZ_VERSION') });
  });

  it('cannot have env from elsewhere, which is said and never sent as an empty value', () => {
    const [entry] = containerModulesOf(makePod({ env: [{ name: 'SECRET', valueFrom: { secretKeyRef: {} } }] }));
    expect(entry).toMatchObject({ kind: 'invalid', message: expect.stringContaining('SECRET') });
  });

  it('takes the last of two values of an env, as a kubelet does', () => {
    const twice = [
      { name: 'BIZ_VERSION', value: '2' },
      { name: 'A', value: '1' },
      { name: 'A', value: '2' },
    ];
    const [entry] = containerModulesOf(makePod({ modules: ['biz1:1'], env: twice }));
    expect(entry).toMatchObject({ kind: 'module', spec: { version: '2', envs: { A: '2' } } });
  });

  it.each(['v'.repeat(129), 'a\nb'])('cannot have a version that a base might not give back: %j', (version) => {
    const [entry] = containerModulesOf(makePod({ env: [{ name: 'BIZ_VERSION', value: version }] }));
    expect(entry).toMatchObject({ kind: 'invalid', message: expect.stringContaining('at most 128 characters') });
  });

  it.each([
    [undefined, undefined],
    ['installOnly', 'installOnly'],
    ['uninstallThenInstall', 'uninstallThenInstall'],
  ])('are installed as the annotation says: %s', (annotation, strategy) => {
    expect(moduleSpecsOf(makePod(annotation ? { strategy: annotation } : {}))[0]?.strategy).toBe(strategy);
  });

  it('are the same module with another strategy: Pods may share it, and a change installs nothing', () => {
    const [one, other] = [makePod(), makePod({ strategy: 'uninstallThenInstall' })].map((pod) => moduleSpecsOf(pod)[0]);
    if (one === undefined || other === undefined) throw new Error('no module');
    expect(fingerprintOf(one)).toBe(fingerprintOf(other));
  });

  it('stay named when the annotation has a value that is none: only an install needs it', () => {
    expect(moduleSpecsOf(makePod({ strategy: 'typo' })).map(({ name }) => name)).toEqual(['biz1']);
  });

  it('cannot have envFrom, which is said and not dropped', () => {
    const object = makePodObject();
    for (const container of object.spec.containers) container.envFrom = [{ configMapRef: { name: 'settings' } }];
    const [entry] = containerModulesOf(projectPod(object));
    expect(entry).toMatchObject({ kind: 'invalid', message: expect.stringContaining('envFrom') });
  });
});

describe('a cached Pod', () => {
  it('is small, whatever else the API server sends', () => {
    const object = makePodObject({ status: { phase: 'Running', containerStatuses: [runningStatus('biz1:1.0.0')] } });
    const big = {
      ...object,
      metadata: { ...object.metadata, annotations: { big: 'x'.repeat(100_000) }, managedFields: ['x'.repeat(100_000)] },
      spec: { ...object.spec, volumes: ['x'.repeat(100_000)], affinity: 'x'.repeat(100_000) },
    };
    expect(JSON.stringify(projectPod(big)).length).toBeLessThan(2_500);
  });

  it('does not differ by the empty fields that the API server adds', () => {
    const condition = { type: 'Ready', status: 'True' as const, lastProbeTime: null, lastTransitionTime: null };
    const container = { ...runningStatus('biz1:1.0.0'), lastState: {}, resources: {} };
    const pod = makePod({ status: { conditions: [condition], containerStatuses: [container] } as never });
    expect(pod.status.conditions).toEqual([{ type: 'Ready', status: 'True' }]);
    expect(pod.status.containerStatuses).toEqual([runningStatus('biz1:1.0.0')]);
  });

  it('knows which containers have started: where the API server does not say so, it has not', () => {
    const { started: _, ...silent } = runningStatus('biz1:1.0.0');
    const containerStatuses = [silent, { ...silent, started: true }, { ...silent, started: false }];
    const pod = makePod({ status: { containerStatuses } as never });
    expect(pod.status.containerStatuses.map(({ started }) => started)).toEqual([false, true, false]);
  });

  it.each([
    [undefined, undefined],
    [0, 0],
    [15, 15],
  ])('knows the sleep before its stop: %s', (sleepSeconds, seconds) => {
    const pod = makePod(sleepSeconds === undefined ? {} : { sleepSeconds });
    expect(pod.containers[0]?.preStopSleepSeconds).toBe(seconds);
  });

  it('knows when its grace period ends, and how long it is', () => {
    expect(makePod({ deleting: true, graceSeconds: 30 })).toMatchObject({
      isDeleting: true,
      deletionTime: '2026-01-01T01:00:00Z',
      deletionGraceSeconds: 30,
    });
    expect(makePod()).toMatchObject({ isDeleting: false, deletionTime: undefined, deletionGraceSeconds: undefined });
  });

  it('has an order by creation, and by UID where that is the same', () => {
    const pods = ['b', 'a'].map((uid) => makePod({ uid }));
    const older = makePod({ uid: 'z', createdAt: '2025-01-01T00:00:00Z' });
    expect([...pods, older].sort(byCreation).map(({ uid }) => uid)).toEqual(['z', 'a', 'b']);
  });
});

describe('the patch of a status', () => {
  const running = { modules: { biz1: 'Running' } };
  const pod = makePod({ uid: 'u1' });

  it('names the incarnation', () => {
    expect(podStatusPatchOf(pod, statusAt(pod, running, 1)).metadata).toEqual({ uid: 'u1' });
  });

  it('sends what changed and nothing else', () => {
    const before = { ...pod, status: statusAt(pod, running, 1) };
    const after = statusAt(before, { modules: { biz1: 'Unknown' }, base: { unreachable: true } }, 2);
    expect(podStatusPatchOf(before, after).status).toEqual({
      reason: 'BaseUnreachable',
      message: 'base b1 sent nothing for 25 s',
      conditions: [expect.objectContaining({ type: 'Ready', status: 'False', reason: 'BaseUnreachable' })],
    });
  });

  it('removes reasons that do not hold any more', () => {
    const silent = { modules: { biz1: 'Unknown' }, base: { unreachable: true } };
    const ready = { ...pod, status: statusAt(pod, running, 1) };
    const before = { ...pod, status: statusAt(ready, silent, 2) };
    const { status } = podStatusPatchOf(before, statusAt(before, running, 3));
    expect(status).toMatchObject({ reason: null, message: null, conditions: [{ type: 'Ready', reason: null }] });
  });

  it('replaces addresses, and does not send conditions of others', () => {
    const foreign = { type: 'DisruptionTarget', status: 'True' as const };
    const status = { ...statusAt(pod, running, 1), conditions: [foreign] };
    const before = { ...pod, status };
    const { status: sent } = podStatusPatchOf(before, statusAt(before, { ...running, base: { ip: '192.0.2.9' } }, 2));
    expect(sent).toMatchObject({
      podIP: '192.0.2.9',
      podIPs: [{ ip: '192.0.2.9' }, { $patch: 'replace' }],
      hostIPs: [{ ip: '192.0.2.9' }, { $patch: 'replace' }],
    });
    expect(JSON.stringify(sent)).not.toContain('DisruptionTarget');
  });

  it.each(['qosClass', 'resize', 'nominatedNodeName'])('never sends %s', (field) => {
    expect(JSON.stringify(podStatusPatchOf(pod, statusAt(pod, running, 1)))).not.toContain(field);
  });
});

describe('the events of a Pod', () => {
  function eventsOf(...texts: string[]): string[] {
    let pod = makePod({ uid: 'u1' });
    return texts.flatMap((text, index) => {
      const next = statusAt(pod, { modules: { biz1: text } }, index + 1);
      const events = next === pod.status ? [] : podEventsOf(pod, next, [{ container: 'biz1', view: viewOf(text) }]);
      pod = { ...pod, status: next };
      return events.map(({ type, reason }) => `${type} ${reason}`);
    });
  }

  it('tell of its start in the kubelet’s words', () => {
    expect(eventsOf('Installing 5', 'Running')).toEqual(['Normal Started']);
  });

  it('tell nothing twice, also to a controller that was started anew', () => {
    const once = eventsOf('Waiting ErrImagePull');
    expect(eventsOf('Waiting ErrImagePull', 'Waiting ErrImagePull', 'Waiting ErrImagePull')).toEqual(once);
    expect(eventsOf('Running', 'Running', 'Unknown', 'Running')).toEqual(eventsOf('Running'));
  });

  it.each([
    ['ErrImagePull', 'no such file', 0],
    ['ErrImagePull', 'no such host', 1],
    ['RunContainerError', 'no such file', 1],
  ] as const)('tell again of other words or another reason: %s, %s', (reason, message, count) => {
    const statusOf = (waiting: { reason: string; message: string }) => ({
      phase: 'Pending',
      containerStatuses: [runningStatus('biz1:1.0.0', { state: { waiting } })],
    });
    const before = makePod({ status: statusOf({ reason: 'ErrImagePull', message: 'no such file' }) });
    const next = { ...before.status, ...statusOf({ reason, message }) };
    const view = { kind: 'Waiting', reason, message, isEnded: true } as const;
    expect(podEventsOf(before, next, [{ container: 'biz1', view }])).toHaveLength(count);
  });

  it.each([
    ['ErrImagePull', 'Failed'],
    ['RunContainerError', 'Failed'],
    ['InstallTimeout', 'Failed'],
    ['ModuleBroken', 'Failed'],
    ['ImagePullBackOff', 'BackOff'],
    ['CrashLoopBackOff', 'BackOff'],
    ['VersionInUse', 'VersionInUse'],
    ['BizDeactivated', 'BizDeactivated'],
    ['BaseRestarted', 'BaseRestarted'],
    ['SwitchError', 'Failed'],
  ])('warn of %s with the reason %s', (waiting, reason) => {
    expect(eventsOf(`Waiting ${waiting}`)).toEqual([`Warning ${reason}`]);
  });

  it('tell of a replacement as of something that somebody asked for', () => {
    expect(eventsOf('Running', 'Waiting ModuleReplaced', 'Waiting ModuleReplaced', 'Running')).toEqual([
      'Normal Started',
      'Normal ModuleReplaced',
      'Normal Started',
    ]);
  });
});
