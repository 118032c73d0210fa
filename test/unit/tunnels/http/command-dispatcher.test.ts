import { describe, expect, it } from 'vitest';
import { AddressPolicy } from '../../../../tunnels/http/address-policy.ts';
import type { ArkletRequest } from '../../../../tunnels/http/arklet-client.ts';
import { CommandDispatcher } from '../../../../tunnels/http/command-dispatcher.ts';
import { LIST_COMMAND, uninstallCommand } from '../../../../tunnels/http/commands.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const BASE = { identity: 'base-1', ip: '10.0.0.1', port: 1238 };
const UNINSTALL = uninstallCommand({ name: 'biz1', version: '1' });

function createDispatcher() {
  const clock = new FakeClock();
  const requests: (ArkletRequest & { resolve: (body: Uint8Array) => void; reject: (error: Error) => void })[] = [];
  const dispatcher = new CommandDispatcher({
    clock,
    client: {
      post: (request) => new Promise((resolve, reject) => requests.push({ ...request, resolve, reject })),
    },
    policy: new AddressPolicy(),
    timeoutsMs: { installBiz: 5, uninstallBiz: 4, switchBiz: 3, queryAllBiz: 2, health: 1 },
    onAnswer: () => {},
  });
  const { signal } = new AbortController();
  return { clock, requests, dispatcher, signal };
}

describe('CommandDispatcher', () => {
  it('counts the wait for a place as part of the time to connect', async () => {
    const { clock, requests, dispatcher, signal } = createDispatcher();
    const sent = Array.from({ length: 10 }, () => dispatcher.send(BASE, UNINSTALL, signal));
    await settle();
    expect(requests.map(({ connectTimeoutMs }) => connectTimeoutMs)).toEqual(Array(8).fill(5_000));
    clock.advance(4_000);
    requests[0]?.resolve(Buffer.from(''));
    await settle();
    clock.advance(4_000);
    requests[1]?.resolve(Buffer.from(''));
    await settle();
    expect(requests.slice(8).map(({ connectTimeoutMs }) => connectTimeoutMs)).toEqual([5_000, 2_000]);
    for (const { resolve } of requests) resolve(Buffer.from(''));
    await Promise.all(sent);
  });

  it('keeps nothing of a base that has nothing under way, however it ended', async () => {
    const { requests, dispatcher, signal, clock } = createDispatcher();
    const sent = [UNINSTALL, UNINSTALL, LIST_COMMAND, LIST_COMMAND].map((command) =>
      dispatcher.send(BASE, command, signal).catch(() => {}),
    );
    await settle();
    expect(requests.map(({ command }) => command).sort()).toEqual(['queryAllBiz', 'uninstallBiz', 'uninstallBiz']);
    expect(dispatcher.size).toBeGreaterThan(0);
    requests[0]?.resolve(Buffer.from(''));
    for (const { reject } of requests) reject(new Error('cut'));
    await Promise.all(sent);
    await settle();
    expect([dispatcher.size, clock.pending]).toEqual([0, 0]);
  });

  it('does not let a base that moved wait for its former address', async () => {
    const { requests, dispatcher, signal } = createDispatcher();
    void dispatcher.send(BASE, LIST_COMMAND, signal);
    void dispatcher.send({ ...BASE, port: 1239 }, LIST_COMMAND, signal);
    await settle();
    expect(requests.map(({ base }) => base.port)).toEqual([1238, 1239]);
  });
});
