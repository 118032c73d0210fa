import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControllerError } from '../../../src/errors.ts';
import { makeList } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const KEY = 'biz1:1.0.0';
let rig: CoreRig;

beforeEach(async () => {
  rig = new CoreRig();
  await rig.start();
});

afterEach(() => rig.stop());

describe('commands', () => {
  it('go over the tunnel that the base is heard over', async () => {
    await rig.foundBase('b1', { tunnel: 'http_tunnel_provider' });
    await rig.foundBase('b2');
    rig.addPod({ name: 'p1' });
    rig.addPod({ name: 'p2', node: 'vnode.b2' });
    await rig.pass(3_000);
    expect(rig.http.take('install')).toEqual([`install b1 ${KEY}`]);
    expect(rig.tunnel.take('install')).toEqual([`install b2 ${KEY}`]);
  });

  it('that the tunnel does not take are sent again a second later, until it does', async () => {
    await rig.foundBase('b1');
    rig.tunnel.refuses = 'install';
    rig.addPod();
    await rig.pass(3_500);
    expect(rig.commands().length).toBeLessThanOrEqual(4);
    rig.tunnel.refuses = undefined;
    await rig.pass(10_000);
    expect(rig.podState('p1')).toBe('Running True');
  });

  it.each([
    ['Tunnel.NotConnected', 'did not leave are in work no longer', undefined],
    ['Tunnel.SendFailed', 'may have left are in doubt', { uncertain: true }],
  ] as const)('(%s) that %s', async (code, _what, inFlight) => {
    await rig.foundBase('b1');
    rig.tunnel.installModule = () => Promise.reject(new ControllerError(code, 'no'));
    rig.addPod();
    await rig.pass(0);
    const record = rig.store.get('vnode.b1')?.ledger.get(KEY);
    expect(record?.retryAt).toBe(rig.clock.now() + 1_000);
    if (inFlight === undefined) expect(record?.inFlight).toBeUndefined();
    else expect(record?.inFlight).toMatchObject(inFlight);
  });

  it('are not sent while the link is down, and are when it is up', async () => {
    await rig.foundBase('b1');
    rig.linkDown();
    rig.addPod();
    await rig.pass(3_000);
    expect(rig.commands()).toEqual([]);
    rig.linkUp();
    await rig.pass(3_000);
    expect(rig.commands()).toEqual([`install b1 ${KEY}`]);
  });

  it('to a silent base wait until it speaks', async () => {
    const base = await rig.foundBase('b1');
    base.isSilent = true;
    await rig.pass(30_000);
    rig.addPod();
    await rig.pass(3_000);
    expect(rig.commands()).toEqual([]);
    base.isSilent = false;
    await rig.pass(15_000);
    expect(rig.commands()).toEqual([`install b1 ${KEY}`]);
  });

  it('are counted with their results, and with the seconds that they took', async () => {
    const base = await rig.foundBase('b1');
    base.answersCommands = false;
    rig.addPod();
    await rig.pass(0);
    await rig.pass(2_500);
    rig.answer('b1', 'install', KEY);
    const { values } = await rig.metrics.moduleOperationSeconds.get();
    const sumOf = (command: string) =>
      values.find(({ metricName, labels }) => metricName?.endsWith('_sum') && labels.command === command)?.value;
    expect(sumOf('install')).toBe(2.5);
    const counted = (await rig.metrics.moduleOperations.get()).values.filter(({ value }) => value > 0);
    expect(counted).toEqual([{ value: 1, labels: { command: 'install', result: 'done' } }]);
  });

  it('are told as events of the Pod that they are for', async () => {
    await rig.foundBase('b1', { tunnel: 'http_tunnel_provider' });
    rig.addPod({ name: 'v1', modules: ['biz1:1'] });
    await rig.pass(3_000);
    rig.addPod({ name: 'v2', modules: ['biz1:2'], createdAt: '2026-01-02T00:00:00Z' });
    await rig.pass(3_000);
    rig.deletePod('v2');
    await rig.pass(3_000);
    const told = rig.events.filter((event) => / (Pulling|Switching|Killing) /.test(event));
    expect(told).toEqual([
      'Normal Pulling v1',
      'Normal Pulling v2',
      'Normal Switching v2',
      'Normal Switching v1',
      'Normal Killing v2',
    ]);
  });

  it('(installs) wait until there is room for their module', async () => {
    await rig.foundBase('b1');
    for (const round of [1, 2]) {
      const names = Array.from({ length: 2_000 }, (_, index) => `r${round}-${index}:1`);
      rig.vnodes.onModuleList({ ...rig.envelope('b1'), publishedAt: 2_000_000 + round }, makeList(...names));
    }
    rig.addPod();
    await rig.pass(500);
    expect(rig.commands()).toEqual([]);
    expect(rig.store.get('vnode.b1')?.ledger.recordCount).toBeLessThanOrEqual(4_000);
    // The plan has dropped what the second list lacks.
    await rig.pass(3_000);
    expect(rig.commands()).toContain(`install b1 ${KEY}`);
  });
});
