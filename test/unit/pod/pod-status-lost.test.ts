import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CoreRig } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
  await rig.foundBase('b1');
});

afterEach(() => rig.stop());

const commands = (): string[] => rig.tunnel.take().filter((line) => !/^(list|health)/.test(line));

describe('what happens while no status can be written', () => {
  it('(a restarted base) is told afterwards: one restart, how it ended, each event once', async () => {
    rig.addPod();
    await rig.pass(5_000);
    rig.api.fail('patch pod', 503, 10_000);
    rig.restart('b1');
    await rig.pass(60_000);
    expect(commands()).toEqual([`install b1 ${KEY}`, `install b1 ${KEY}`]);
    expect(rig.container('p1')?.restartCount).toBe(0);
    rig.api.heal();
    await rig.pass(40_000);
    expect(rig.container('p1')).toMatchObject({
      restartCount: 1,
      ready: true,
      lastState: { terminated: { reason: 'BaseRestarted' } },
    });
    expect(rig.podState('p1')).toBe('Running True');
    const ofPod = rig.events.filter((event) => event.endsWith(' p1') && !event.includes('Pulling'));
    expect(ofPod).toEqual(['Normal Started p1', 'Warning BaseRestarted p1', 'Normal Started p1']);
  });

  it('(a crash of a Pod that must not restart) leaves it Failed: the module is not installed again', async () => {
    rig.addPod({ restartPolicy: 'Never' });
    await rig.pass(5_000);
    commands();
    rig.api.fail('patch pod', 503, 10_000);
    rig.bases.get('b1')?.modules.set(KEY, 'BROKEN');
    rig.list('b1');
    await rig.pass(60_000);
    expect(commands()).toEqual([`uninstall b1 ${KEY}`]);
    rig.api.heal();
    await rig.pass(40_000);
    expect(rig.api.pod('p1')?.status?.phase).toBe('Failed');
    expect(commands()).toEqual([]);
  });

  it('is not told over what others have written meanwhile', async () => {
    rig.addPod();
    await rig.pass(5_000);
    rig.api.fail('patch pod', 503, 10_000);
    rig.restart('b1');
    await rig.pass(10_000);
    const pod = rig.api.pod('p1');
    const gate = { type: 'example.com/gate', status: 'True' as const };
    rig.api.put('pod', {
      ...pod,
      status: { ...pod?.status, conditions: [...(pod?.status?.conditions ?? []), gate] },
    } as never);
    rig.api.heal();
    await rig.pass(40_000);
    expect(rig.api.pod('p1')?.status?.conditions).toContainEqual(expect.objectContaining(gate));
    expect(rig.container('p1')?.restartCount).toBe(1);
  });

  it('costs no further write when only the answer was lost', async () => {
    rig.addPod();
    await rig.pass(5_000);
    rig.api.take();
    rig.api.loseAnswer('patch pod');
    rig.restart('b1');
    await rig.pass(60_000);
    expect(rig.container('p1')?.restartCount).toBe(1);
    expect(rig.api.take('patch pod').length).toBeLessThanOrEqual(3);
  });
});
