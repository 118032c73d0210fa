import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CoreRig } from '../../support/core-rig.ts';
import type { RigBase } from '../../support/rig-base.ts';
import { SlowCommands } from '../../support/slow-commands.ts';

const TAKES_MS = { install: 1_000, uninstall: 100, switch: 20 };
const dayOf = (number: number): string => new Date(Date.UTC(2026, 0, number)).toISOString().replace('.000Z', 'Z');
let rig: CoreRig;
let base: RigBase;
let slow: SlowCommands;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

function addVersion(version: number, more: Parameters<CoreRig['addPod']>[0] = {}): void {
  rig.addPod({ name: `v${version}`, modules: [`biz1:${version}`], createdAt: dayOf(version), ...more });
}

/** A base that makes a new version the active one, with version 1 serving. */
async function serving(tunnel: RigBase['tunnel'], more: Parameters<CoreRig['addPod']>[0] = {}): Promise<void> {
  base = await rig.foundBase('b1', { tunnel, activatesNew: true });
  addVersion(1, more);
  await rig.pass(15_000);
  rig.commands();
  slow = new SlowCommands(rig, base, TAKES_MS);
}

const PODS = { v1: 'biz1:1' };
const TUNNELS = ['http_tunnel_provider', 'mqtt_tunnel_provider'] as const;
const HTTP = TUNNELS[0];

describe.each(TUNNELS)('a Pod that goes while its version is installed, over %s', (tunnel) => {
  beforeEach(() => serving(tunnel));

  /** Version 1 has served all the time, or another one in its place, and its Pod was Ready only while it did. */
  function expectNoGap(): void {
    expect(slow.gaps).toEqual([]);
    expect(slow.falselyReady).toEqual(new Map());
  }

  it('leaves the base to the version that was there before, at no time without an active one', async () => {
    addVersion(2);
    await slow.pass(300, PODS);
    rig.deletePod('v2');
    await slow.pass(10_000, PODS);
    expectNoGap();
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
    expect([rig.podState('v1'), rig.podState('v2')]).toEqual(['Running True', undefined]);
    const handover = tunnel === HTTP ? ['switch b1 biz1:1'] : ['uninstall b1 biz1:1', 'install b1 biz1:1'];
    expect(rig.commands()).toEqual(['install b1 biz1:2', ...handover, 'uninstall b1 biz1:2']);
    expect(rig.container('v1')).toMatchObject({ restartCount: tunnel === HTTP ? 0 : 1 });
  });

  it('does so when it is deleted by force', async () => {
    addVersion(2);
    await slow.pass(300, PODS);
    rig.api.drop('pod', 'v2');
    await slow.pass(10_000, PODS);
    expectNoGap();
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
  });

  it('does so before its preStop sleep is over, and is uninstalled after that', async () => {
    addVersion(2, { sleepSeconds: 10 });
    await slow.pass(5_000, PODS);
    rig.deletePod('v2');
    await slow.pass(5_000, PODS);
    expect(rig.podState('v1')).toBe('Running True');
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED', 'biz1:2 DEACTIVATED']);
    await slow.pass(10_000, PODS);
    expectNoGap();
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
  });

  it('does so although the base never answers the install', async () => {
    slow.answer = (command, key) => (command === 'install' && key === 'biz1:2' ? 'unanswered' : 'done');
    addVersion(2);
    await slow.pass(300, PODS);
    rig.deletePod('v2');
    await slow.pass(60_000);
    expect(slow.gaps).toEqual([]);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
    expect([rig.podState('v1'), rig.podState('v2')]).toEqual(['Running True', undefined]);
  });

  it('leaves the base to a third version, at no time without an active one', async () => {
    addVersion(2);
    await slow.pass(300);
    rig.deletePod('v2');
    addVersion(3);
    await slow.pass(10_000, PODS);
    expectNoGap();
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:3 ACTIVATED']);
    expect(rig.podState('v3')).toBe('Running True');
  });

  it('leaves the base to the last of 20 versions in two seconds, at no time without an active one', async () => {
    for (let version = 2; version <= 20; version++) {
      if (version > 2) rig.deletePod(`v${version - 1}`);
      addVersion(version);
      await slow.pass(100, PODS);
    }
    await slow.pass(30_000, PODS);
    expectNoGap();
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 DEACTIVATED', 'biz1:20 ACTIVATED']);
    expect(rig.podState('v20')).toBe('Running True');
    rig.deletePod('v1');
    await slow.pass(5_000);
    expect(slow.gaps).toEqual([]);
    expect(rig.modulesOf('b1')).toEqual(['biz1:20 ACTIVATED']);
  });

  it('waits for a third version that takes long, unless the first one can take over meanwhile', async () => {
    slow.answer = (command, key) => (command === 'install' && key === 'biz1:3' ? 'never' : 'done');
    addVersion(2);
    await slow.pass(300);
    rig.deletePod('v2');
    addVersion(3);
    await slow.pass(20_000, PODS);
    expectNoGap();
    expect(rig.podState('v1')).toBe(tunnel === HTTP ? 'Running True' : 'Running False ContainersNotReady');
    expect(rig.modulesOf('b1')).toContain(tunnel === HTTP ? 'biz1:1 ACTIVATED' : 'biz1:2 ACTIVATED');
  });

  it('keeps its version while that serves and the old version is deleted', async () => {
    addVersion(2);
    await slow.pass(300);
    rig.deletePod('v1');
    await slow.pass(10_000);
    // Whether the base makes new versions active is known over MQTT when an install has shown it.
    expect(slow.gaps.length).toBe(tunnel === HTTP ? 0 : 1);
    expect(rig.modulesOf('b1')).toEqual(['biz1:2 ACTIVATED']);
  });
});

describe('a base over MQTT', () => {
  beforeEach(() => serving('mqtt_tunnel_provider'));

  it('that cannot install the old version again loses the new one, and is tried again with the old one', async () => {
    let failures = 1;
    slow.answer = (command, key) => (command === 'install' && key === 'biz1:1' && failures-- > 0 ? 'failed' : 'done');
    addVersion(2);
    await slow.pass(300, PODS);
    rig.deletePod('v2');
    await slow.pass(30_000, PODS);
    expect(rig.commands()).toEqual([
      'install b1 biz1:2',
      'uninstall b1 biz1:1',
      'install b1 biz1:1',
      'uninstall b1 biz1:2',
      'install b1 biz1:1',
    ]);
    expect(slow.falselyReady).toEqual(new Map());
    expect([rig.podState('v1'), rig.podState('v2')]).toEqual(['Running True', undefined]);
  });

  it('makes the youngest Pod’s version active, once it has shown that an install does that', async () => {
    addVersion(2);
    await slow.pass(5_000);
    addVersion(1, { name: 'v1-again', createdAt: dayOf(3) });
    await slow.pass(5_000);
    expect(slow.gaps).toEqual([]);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED', 'biz1:2 DEACTIVATED']);
    expect(rig.podState('v1-again')).toBe('Running True');
  });

  it('that keeps the version that was there first active is not asked for it again and again', async () => {
    base.activatesNew = false;
    base.modules.set('biz1:1', 'DEACTIVATED').set('biz1:9', 'ACTIVATED');
    addVersion(9);
    rig.list('b1');
    await slow.pass(1_000);
    rig.deletePod('v9');
    await slow.pass(30_000);
    expect(rig.commands()).toEqual([
      'uninstall b1 biz1:1',
      'install b1 biz1:1',
      'uninstall b1 biz1:9',
      'uninstall b1 biz1:1',
      'install b1 biz1:1',
    ]);
    expect(rig.modulesOf('b1')).toEqual(['biz1:1 ACTIVATED']);
  });
});

describe.each(TUNNELS)('a base that can hold one version only (uninstallThenInstall), over %s', (tunnel) => {
  const strategy = 'uninstallThenInstall';

  it('is without an active version for one uninstall and one install when the new Pod goes', async () => {
    await serving(tunnel, { strategy });
    addVersion(2, { strategy });
    await slow.pass(5_000);
    slow.gaps.length = 0;
    rig.commands();
    rig.deletePod('v2');
    await slow.pass(10_000, PODS);
    expect(rig.commands()).toEqual(['uninstall b1 biz1:2', 'install b1 biz1:1']);
    expect(slow.gaps).toHaveLength(1);
    expect(slow.lostMs).toBeLessThanOrEqual(TAKES_MS.uninstall + TAKES_MS.install);
    expect(slow.falselyReady).toEqual(new Map());
    expect(rig.podState('v1')).toBe('Running True');
  });

  it('serves with the new version between its install and its uninstall when that Pod goes during the install', async () => {
    await serving(tunnel, { strategy });
    addVersion(2, { strategy });
    await slow.pass(300, PODS);
    rig.deletePod('v2');
    await slow.pass(10_000, PODS);
    expect(rig.commands()).toEqual(['install b1 biz1:2', 'uninstall b1 biz1:2', 'install b1 biz1:1']);
    expect(slow.lostMs).toBeLessThanOrEqual(2 * TAKES_MS.install + TAKES_MS.uninstall);
    expect(slow.falselyReady).toEqual(new Map());
    expect(rig.podState('v1')).toBe('Running True');
  });
});
