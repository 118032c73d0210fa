import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CoreRig } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';

const OLD = '2026-01-01T00:00:00Z';
const YOUNG = '2026-01-02T00:00:00Z';
const YOUNGEST = '2026-01-03T00:00:00Z';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

function baseOver(tunnel: RigBase['tunnel'], more: Partial<RigBase> = {}): Promise<RigBase> {
  return rig.foundBase('b1', { tunnel, ...more });
}

const overHttp = (more: Partial<RigBase> = {}): Promise<RigBase> => baseOver('http_tunnel_provider', more);

/** A Pod with one version of `biz1`, and time for it to come up. */
async function addVersion(version: string, createdAt: string, more: Parameters<CoreRig['addPod']>[0] = {}) {
  rig.addPod({ name: `v${version}`, modules: [`biz1:${version}`], createdAt, ...more });
  await rig.pass(5_000);
}

describe('a second version on a base that keeps the first one active', () => {
  it('is made the active one over HTTP: the old Pod is not ready before the new one is ready', async () => {
    await overHttp();
    await addVersion('1', OLD);
    rig.commands();
    rig.api.take();
    await addVersion('2', YOUNG);
    expect(rig.commands()).toEqual(['install b1 biz1:2', 'switch b1 biz1:2']);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:2 ACTIVATED']);
    expect(rig.api.take('patch pod')).toEqual(['patch pod/status ns/v1', 'patch pod/status ns/v2']);
    expect([rig.podState('v1'), rig.podState('v2')]).toEqual(['Running False ContainersNotReady', 'Running True']);
    expect(rig.events).toContain('Normal Switching v2');
    expect(rig.events).toContain('Normal BizDeactivated v1');
    expect(rig.container('v2')).toMatchObject({ restartCount: 0 });
  });

  it('waits over MQTT, where there is no such command, and is told of the property', async () => {
    await baseOver('mqtt_tunnel_provider');
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    await rig.pass(120_000);
    expect(rig.commands()).toEqual(['install b1 biz1:1', 'install b1 biz1:2']);
    expect([rig.podState('v1'), rig.waiting('v2')]).toEqual(['Running True', 'BizDeactivated']);
    expect(rig.container('v2')?.state?.waiting?.message).toContain('-Dactivate.new.module=true');
  });

  it('needs no command where the base activates what is new', async () => {
    await overHttp({ activatesNew: true });
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    expect(rig.commands()).toEqual(['install b1 biz1:1', 'install b1 biz1:2']);
    expect([rig.waiting('v1'), rig.podState('v2')]).toEqual(['BizDeactivated', 'Running True']);
  });

  it('leaves it to the youngest of three', async () => {
    await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    await addVersion('3', YOUNGEST);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:2 DEACTIVATED', 'biz1:3 ACTIVATED']);
    rig.commands();
    await rig.pass(300_000);
    expect(rig.commands()).toEqual([]);
  });

  it.each(['a', 'z'])('stays the active one when both Pods are of one second (UID %s)', async (uid) => {
    await overHttp();
    await addVersion('1', OLD, { uid });
    await addVersion('2', OLD, { uid: 'm' });
    await rig.pass(60_000);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:2 ACTIVATED']);
    expect(rig.commands().filter((line) => line.startsWith('switch'))).toEqual(['switch b1 biz1:2']);
  });

  it('is the active one also when its Pod shares it with an older one: the youngest Pod decides', async () => {
    await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    await addVersion('1', YOUNGEST, { name: 'v1-again' });
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED', 'biz1:2 DEACTIVATED']);
    expect(rig.podState('v1-again')).toBe('Running True');
  });
});

describe('a rollback', () => {
  async function rolledBack(more: Partial<RigBase> = {}): Promise<RigBase> {
    const base = await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    Object.assign(base, more);
    rig.commands();
    rig.deletePod('v2');
    return base;
  }

  it('switches back before it uninstalls: at no time is the base without an active version', async () => {
    await rolledBack();
    await rig.pass(5_000);
    expect(rig.commands()).toEqual(['switch b1 biz1:1', 'uninstall b1 biz1:2']);
    expect(rig.podState('v1')).toBe('Running True');
    expect(rig.container('v1')).toMatchObject({ restartCount: 0 });
    expect(rig.api.pod('v2')).toBeUndefined();
  });

  it('keeps what is active while the switch is not answered, and goes on when its time is over', async () => {
    const base = await rolledBack({ answersCommands: false });
    await rig.pass(50_000);
    expect(rig.commands()).toEqual(['switch b1 biz1:1']);
    expect(rig.api.pod('v2')).toBeDefined();
    base.answersCommands = true;
    await rig.pass(60_000);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
    expect(rig.podState('v1')).toBe('Running True');
    expect(rig.api.pod('v2')).toBeUndefined();
  });

  it('that cannot switch installs the older version anew, which counts as a restart', async () => {
    await rolledBack({ switches: 'refused' });
    await rig.pass(60_000);
    expect(rig.commands()).toEqual([
      'switch b1 biz1:1',
      'uninstall b1 biz1:2',
      'uninstall b1 biz1:1',
      'install b1 biz1:1',
    ]);
    expect(rig.podState('v1')).toBe('Running True');
    expect(rig.container('v1')).toMatchObject({ restartCount: 1 });
    expect(rig.api.pod('v2')).toBeUndefined();
  });

  it('takes the younger of two older versions', async () => {
    await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    await addVersion('3', YOUNGEST);
    rig.commands();
    rig.deletePod('v3');
    await rig.pass(5_000);
    expect(rig.commands()).toEqual(['switch b1 biz1:2', 'uninstall b1 biz1:3']);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:2 ACTIVATED']);
  });

  it('waits for no version that a third one replaces, since that one is not switched to', async () => {
    const base = await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    base.answersCommands = false;
    await addVersion('3', YOUNGEST, { strategy: 'uninstallThenInstall' });
    rig.fail('b1', 'install', 'biz1:3', 'FileNotFoundException');
    rig.commands();
    rig.deletePod('v2');
    await rig.pass(5_000);
    expect(rig.commands()).toContain('uninstall b1 biz1:2');
  });
});

describe('a version that is not the active one any more', () => {
  it('is not shown as ready while it is made active again', async () => {
    const base = await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    base.answersCommands = false;
    base.modules.set('biz1:1', 'ACTIVATED').set('biz1:2', 'DEACTIVATED');
    rig.list('b1', rig.clock.now());
    await rig.pass(5_000);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED', 'biz1:2 DEACTIVATED']);
    expect(rig.podState('v2')).toBe('Running False ContainersNotReady');
    expect(rig.container('v2')).toMatchObject({ restartCount: 0 });
  });

  it('is switched to at once when the active one ends, also when its install failed once, long ago', async () => {
    const base = await overHttp({ answersCommands: false });
    rig.addPod({ name: 'v1', modules: ['biz1:1'], createdAt: OLD });
    await rig.pass(1_000);
    rig.fail('b1', 'install', 'biz1:1', 'FileNotFoundException');
    base.answersCommands = true;
    await rig.pass(20_000);
    await addVersion('2', YOUNG);
    rig.commands();
    base.answersCommands = false;
    base.modules.set('biz1:2', 'STOPPED');
    rig.list('b1', rig.clock.now());
    await rig.pass(1_000);
    expect(rig.commands()).toContain('switch b1 biz1:1');
  });

  it('is left alone when the active one ends and a younger one is switched to', async () => {
    const base = await overHttp();
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    await addVersion('3', YOUNGEST);
    rig.commands();
    base.modules.set('biz1:3', 'STOPPED');
    rig.list('b1', rig.clock.now());
    await rig.pass(60_000);
    expect(rig.commands().filter((line) => line.endsWith('biz1:1'))).toEqual([]);
    expect(rig.container('v1')).toMatchObject({ restartCount: 0 });
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:2 DEACTIVATED', 'biz1:3 ACTIVATED']);
  });
});

describe('a switch', () => {
  it('that fails is shown with the base’s words and tried again ever later, while the old version serves', async () => {
    await overHttp({ switches: 'refused' });
    await addVersion('1', OLD);
    await addVersion('2', YOUNG);
    expect(rig.container('v2')?.state?.waiting).toMatchObject({
      reason: 'SwitchError',
      message: 'switchBiz failed: no',
    });
    expect(rig.podState('v1')).toBe('Running True');
    rig.commands();
    await rig.pass(300_000);
    expect(rig.commands()).toEqual(Array(4).fill('switch b1 biz1:2'));
    expect(rig.podState('v1')).toBe('Running True');
  });

  it('that is answered as done and was not is not sent over and over', async () => {
    const base = await overHttp({ switches: 'pretended' });
    await addVersion('1', OLD);
    rig.commands();
    rig.addPod({ name: 'v2', modules: ['biz1:2'], createdAt: YOUNG });
    let switches = 0;
    const { onSent } = rig.http;
    rig.http.onSent = (question, ...rest) => {
      if (question === 'switch' && ++switches > 100) base.answersCommands = false;
      onSent(question, ...rest);
    };
    await rig.pass(60_000);
    expect(switches).toBeLessThan(10);
    expect(rig.podState('v1')).toBe('Running True');
  });

  it.each([true, false])('whose answer was lost is settled by the list (it was done: %s)', async (wasDone) => {
    const base = await overHttp();
    await addVersion('1', OLD);
    rig.commands();
    base.answersCommands = false;
    base.modules.set('biz1:2', 'DEACTIVATED');
    rig.list('b1', rig.clock.now());
    rig.http.refuses = 'switch';
    await addVersion('2', YOUNG).catch(() => {});
    if (wasDone) base.modules.set('biz1:1', 'DEACTIVATED').set('biz1:2', 'ACTIVATED');
    rig.http.refuses = undefined;
    base.answersCommands = true;
    await rig.pass(20_000);
    expect(rig.podState('v2')).toBe('Running True');
    expect(rig.waiting('v1')).toBe('BizDeactivated');
  });

  it('is not sent twice, and what it did is adopted, when the controller is started anew meanwhile', async () => {
    const base = await overHttp();
    await addVersion('1', OLD);
    base.answersCommands = false;
    base.modules.set('biz1:2', 'DEACTIVATED');
    rig.list('b1', rig.clock.now());
    await addVersion('2', YOUNG);
    expect(rig.commands().filter((line) => line.startsWith('switch'))).toEqual(['switch b1 biz1:2']);
    const next = new CoreRig();
    const again = next.base('b1', { tunnel: 'http_tunnel_provider', info: base.info });
    again.modules.set('biz1:1', 'DEACTIVATED').set('biz1:2', 'ACTIVATED');
    for (const name of ['v1', 'v2']) next.api.put('pod', rig.api.pod(name) as never);
    next.api.put('node', rig.api.node('vnode.b1') as never);
    await next.start();
    next.heartbeat('b1');
    await next.pass(5_000);
    expect(next.commands()).toEqual([]);
    expect([next.waiting('v1'), next.podState('v2')]).toEqual(['BizDeactivated', 'Running True']);
    await next.stop();
  });
});
