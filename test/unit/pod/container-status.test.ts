import { describe, expect, it } from 'vitest';
import type { ContainerStatus } from '../../../src/kube/objects.ts';
import { containerStatusOf, terminated } from '../../../src/pod/container-status.ts';
import type { ContainerModule } from '../../../src/pod/module-spec.ts';
import type { ModuleView } from '../../../src/pod/module-view.ts';
import { makeSpec, runningStatus, urlOf } from '../../support/builders.ts';

const KEY = 'biz1:1.0.0';
const T1 = '2026-01-01T00:00:10Z';
const T2 = '2026-01-01T00:01:00Z';
const ENTRY = { kind: 'module', container: 'biz1', spec: makeSpec(KEY) } as ContainerModule;
const RUNNING = { kind: 'Running' } as const;
const BROKEN = { kind: 'Waiting', reason: 'ModuleBroken', message: 'no', isEnded: true } as const;

/** The next status of a container that has `prev`. */
function next(view: ModuleView, prev?: ContainerStatus): ContainerStatus | undefined {
  return containerStatusOf({ entry: ENTRY, image: urlOf(KEY), view, prev, identity: 'b1', nowText: T2 });
}

const END = { exitCode: 1, reason: 'ModuleBroken', message: 'no', startedAt: T1, finishedAt: T2 };

describe('a container', () => {
  it('that starts for the first time is no restart', () => {
    expect(next(RUNNING)).toMatchObject({
      ready: true,
      started: true,
      restartCount: 0,
      state: { running: { startedAt: T2 } },
      containerID: `koupleless://b1/${KEY}`,
    });
    expect(next(RUNNING)).not.toHaveProperty('lastState');
  });

  it('that runs keeps when it was started', () => {
    expect(next(RUNNING, runningStatus(KEY))).toEqual(runningStatus(KEY));
  });

  it('that ended shows when and why, and counts as restarted when it runs again', () => {
    const ended = next(BROKEN, runningStatus(KEY, { restartCount: 2 }));
    expect(ended).toMatchObject({
      ready: false,
      started: false,
      restartCount: 2,
      state: { waiting: { reason: 'ModuleBroken', message: 'no' } },
      lastState: { terminated: { ...END, containerID: `koupleless://b1/${KEY}` } },
    });
    const again = next(RUNNING, ended);
    expect(again).toMatchObject({ restartCount: 3, started: true, state: { running: { startedAt: T2 } } });
    expect(again?.lastState).toEqual(ended?.lastState);
    expect(next(RUNNING, again)?.restartCount).toBe(3);
  });

  it('that never ran has no end', () => {
    const failed = next({ ...BROKEN, reason: 'ErrImagePull' });
    expect(failed).toMatchObject({ ready: false, started: false, restartCount: 0 });
    expect(failed).not.toHaveProperty('lastState');
    expect(failed).not.toHaveProperty('containerID');
    expect(next(RUNNING, failed)?.restartCount).toBe(0);
  });

  it('that waits beside the active version is still started, and no restart when it serves again', () => {
    const beside = next(
      { kind: 'Waiting', reason: 'BizDeactivated', message: 'm', isEnded: false },
      runningStatus(KEY),
    );
    expect(beside).toMatchObject({ ready: false, started: true });
    expect(beside).not.toHaveProperty('lastState');
    const again = next(RUNNING, { ...beside, lastState: { terminated: END } } as ContainerStatus);
    expect(again).toMatchObject({ restartCount: 0, ready: true });
  });

  it('that is installed anew has ended with an error', () => {
    const installing = next({ kind: 'Installing', sinceMs: 0 }, runningStatus(KEY));
    expect(installing).toMatchObject({
      started: false,
      state: { waiting: { reason: 'ContainerCreating' } },
      lastState: { terminated: { exitCode: 1, reason: 'Error', startedAt: T1, finishedAt: T2 } },
    });
    expect(installing?.state?.waiting).not.toHaveProperty('message');
  });

  it('that was deactivated when it ended is shown as started and ended now', () => {
    const deactivated = runningStatus(KEY, { state: { waiting: { reason: 'BizDeactivated' } } });
    expect(next(BROKEN, deactivated)?.lastState?.terminated).toMatchObject({ startedAt: T2, finishedAt: T2 });
    const stopped = { ...deactivated, started: false };
    expect(next(BROKEN, stopped)).not.toHaveProperty('lastState');
  });

  it('that is switched to is not ready before it is the active version', () => {
    const switching = { kind: 'Installing', sinceMs: 0, isSwitch: true } as const;
    expect(next(switching, runningStatus(KEY))).toMatchObject({
      ready: false,
      started: true,
      state: { waiting: { reason: 'BizDeactivated' } },
    });
    const waiting = runningStatus(KEY, { ready: false, state: { waiting: { reason: 'BizDeactivated' } } });
    expect(next(switching, waiting)).toEqual(waiting);
    expect(next(switching)?.state?.waiting?.reason).toBe('ContainerCreating');
  });

  it('of which nothing is known stays as it is', () => {
    expect(next({ kind: 'Unknown' })).toBeUndefined();
    expect(next({ kind: 'Unknown' }, runningStatus(KEY))).toEqual(runningStatus(KEY));
  });

  it('that is no module is not ready, and says why', () => {
    expect(next({ kind: 'Unsupported' })).toMatchObject({
      ready: false,
      started: false,
      state: { waiting: { reason: 'UnsupportedWorkload' } },
    });
  });

  it('shows no secret that an earlier version of the controller wrote', () => {
    const secret = 'at https://u:s3cret@h/x.jar';
    const prev = runningStatus(KEY, {
      state: { waiting: { reason: 'R', message: secret } },
      lastState: { terminated: { ...END, message: secret } },
    });
    const shown = next({ kind: 'Unknown' }, prev);
    expect(JSON.stringify(shown)).not.toContain('s3cret');
    expect(shown?.state?.waiting?.reason).toBe('R');
    const without = runningStatus(KEY, { lastState: { terminated: { exitCode: 1, reason: 'Error' } } } as never);
    expect(next({ kind: 'Unknown' }, without)).toEqual(without);
  });
});

describe('a container of a Pod that has failed', () => {
  it('has ended, as its wait says', () => {
    const waiting = runningStatus(KEY, { ready: false, state: { waiting: { reason: 'ModuleBroken', message: 'no' } } });
    expect(terminated(waiting, T2)).toMatchObject({
      ready: false,
      started: false,
      state: { terminated: { exitCode: 1, reason: 'ModuleBroken', message: 'no', startedAt: T2, finishedAt: T2 } },
    });
  });

  it('has ended with the Pod when it ran', () => {
    const { state } = terminated(runningStatus(KEY, { lastState: { terminated: END } }), T2);
    expect(state).toEqual({
      terminated: {
        exitCode: 1,
        reason: 'Error',
        message: 'another module of the Pod failed',
        startedAt: T1,
        finishedAt: T2,
      },
    });
  });

  it('shows the end that it had before', () => {
    const ended = runningStatus(KEY, { state: { waiting: { reason: 'R' } }, lastState: { terminated: END } });
    const shown = terminated(ended, '2026-01-01T00:05:00Z');
    expect(shown).toMatchObject({ ready: false, started: false, state: { terminated: END } });
    expect(shown).not.toHaveProperty('lastState');
    expect(terminated(shown, '2026-01-01T00:06:00Z')).toBe(shown);
  });
});
