import { afterEach, describe, expect, it, vi } from 'vitest';
import { BIZ, type Rig, startRig } from './rig.ts';

const ANSWER = { kind: 'bizOperation' };

let rig: Rig;
afterEach(() => rig.stop());

function baseClients(): string[] {
  return rig.broker.clientIds().filter((id) => id.startsWith('koupleless@@@'));
}

async function install(identity: string): Promise<void> {
  const count = rig.controller.all({ ...ANSWER, identity }).length;
  rig.controller.send(identity, 'installBiz', BIZ);
  await rig.controller.nth(count + 1, { ...ANSWER, identity });
}

describe('bases that share a connection', () => {
  it('are one client of the broker, and each hears its own commands only', async () => {
    rig = await startRig({ count: 3, sharesConnection: true });
    expect(baseClients()).toHaveLength(1);
    await install('base-2');
    expect(rig.controller.all(ANSWER).map(({ identity }) => identity)).toEqual(['base-2']);
    expect(rig.fleet.bases.map((base) => base.modules().length)).toEqual([0, 1, 0]);
    expect(rig.fleet.history.records().map(({ base }) => base)).toEqual(['base-2']);
  });

  it('die one by one: the others go on, and the connection ends with the last', async () => {
    rig = await startRig({ count: 2, sharesConnection: true });
    await rig.fleet.base('base-1').kill();
    rig.controller.send('base-1', 'installBiz', BIZ);
    rig.fleet.base('base-1').publishRaw('fence', '{}');
    await install('base-2');
    expect(rig.controller.all({ identity: 'base-1', kind: 'fence' })).toEqual([]);
    expect(rig.fleet.history.records({ base: 'base-1' })).toEqual([]);
    expect(rig.fleet.bases.map(({ isConnected }) => isConnected)).toEqual([false, true]);
    await rig.fleet.base('base-2').kill();
    expect(rig.fleet.bases.map(({ isConnected }) => isConnected)).toEqual([false, false]);
  });

  it('come again, also after the last had gone, and others come later', async () => {
    rig = await startRig({ count: 1, sharesConnection: true });
    await install('base-1');
    await rig.fleet.base('base-1').restart();
    expect(rig.fleet.base('base-1').modules()).toEqual([]);
    await install('base-1');
    await rig.fleet.add({ identity: 'late' });
    await install('late');
    expect(baseClients()).toHaveLength(1);
  });

  it('all hear again after the connection was lost', async () => {
    rig = await startRig({ count: 2, sharesConnection: true });
    await rig.fleet.add({ identity: 'late' });
    await rig.broker.pause();
    await vi.waitFor(() => expect(rig.fleet.bases.some(({ isConnected }) => isConnected)).toBe(false));
    await rig.broker.resume();
    await vi.waitFor(() => expect(rig.fleet.bases.every(({ isConnected }) => isConnected)).toBe(true));
    for (const identity of ['base-1', 'base-2', 'late']) {
      await vi.waitFor(() => {
        rig.controller.send(identity, 'health', {});
        expect(rig.fleet.history.records({ base: identity, command: 'health' })).not.toEqual([]);
      });
    }
  });
});
