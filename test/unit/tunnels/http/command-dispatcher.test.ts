import { describe, expect, it } from 'vitest';
import { AddressPolicy } from '../../../../src/tunnel/address-policy.ts';
import { type ArkletRequest, CommandDispatcher } from '../../../../tunnels/http/command-dispatcher.ts';
import { LIST_COMMAND, uninstallCommand } from '../../../../tunnels/http/commands.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const BASE = { identity: 'base-1', ip: '10.0.0.1', port: 1238 };
const UNINSTALL = uninstallCommand({ name: 'biz1', version: '1' });
const ANSWER = Buffer.from('');

interface Sent extends ArkletRequest {
  readonly resolve: (body: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Commands leave when the test says so, or at once. */
function createDispatcher({ leavesAtOnce = true } = {}) {
  const clock = new FakeClock();
  const requests: Sent[] = [];
  const askedAt: number[] = [];
  const dispatcher = new CommandDispatcher({
    clock,
    client: {
      post: (request) =>
        new Promise((resolve, reject) => {
          requests.push({ ...request, resolve, reject });
          if (leavesAtOnce) request.onLeft?.();
        }),
      abandon: (reason) => {
        for (const { reject } of requests) reject(new Error(reason));
      },
    },
    policy: new AddressPolicy(),
    timeoutsMs: { installBiz: 5, uninstallBiz: 4, switchBiz: 3, queryAllBiz: 2, health: 1 },
    onAnswer: (_base, _command, answered) => askedAt.push(answered.askedAt),
  });
  const { signal } = new AbortController();
  return { clock, requests, askedAt, dispatcher, signal };
}

describe('CommandDispatcher', () => {
  it('counts the wait for a place as part of the time to leave', async () => {
    const { clock, requests, dispatcher, signal } = createDispatcher();
    const sent = Array.from({ length: 10 }, () => dispatcher.send(BASE, UNINSTALL, signal));
    await settle();
    expect(requests.map(({ leaveWithinMs }) => leaveWithinMs)).toEqual(Array(8).fill(10_000));
    clock.advance(4_000);
    requests[0]?.resolve(ANSWER);
    await settle();
    clock.advance(5_500);
    requests[1]?.resolve(ANSWER);
    await settle();
    expect(requests.slice(8).map(({ leaveWithinMs }) => leaveWithinMs)).toEqual([6_000, 1_000]);
    for (const { resolve } of requests) resolve(ANSWER);
    await Promise.all(sent);
  });

  it('keeps a question until it is answered, and nothing after that', async () => {
    const { requests, dispatcher, signal } = createDispatcher();
    const sent = dispatcher.send(BASE, LIST_COMMAND, signal);
    await settle();
    expect(dispatcher.size).toBeGreaterThan(0);
    requests[0]?.resolve(ANSWER);
    await sent;
    expect(dispatcher.size).toBe(0);
  });

  it('lets operations leave for a base one after the other, and questions and other bases beside them', async () => {
    const { clock, requests, dispatcher, signal } = createDispatcher({ leavesAtOnce: false });
    const names = (): string[] => requests.map(({ base, command }) => `${base.identity} ${command}`);
    const sent = [BASE, BASE, BASE, { ...BASE, identity: 'base-2' }].map((base) =>
      dispatcher.send(base, UNINSTALL, signal).catch(({ code }) => code),
    );
    sent.push(dispatcher.send(BASE, LIST_COMMAND, signal));
    await settle();
    expect(names()).toEqual(['base-1 queryAllBiz', 'base-1 uninstallBiz', 'base-2 uninstallBiz']);
    requests[1]?.onLeft?.();
    await settle();
    expect(names().slice(3)).toEqual(['base-1 uninstallBiz']);
    clock.advance(3_000);
    requests[3]?.reject(new Error('no loop is free'));
    await settle();
    expect(names().slice(4)).toEqual(['base-1 uninstallBiz']);
    expect(requests.map(({ leaveWithinMs }) => leaveWithinMs)).toEqual([9_000, 10_000, 10_000, 10_000, 7_000]);
    for (const { resolve } of requests) resolve(ANSWER);
    await Promise.all(sent);
    expect([dispatcher.size, clock.pending]).toEqual([0, 0]);
  });

  it('does not let an operation wait longer than 10 s for those that leave before it', async () => {
    const { clock, requests, dispatcher, signal } = createDispatcher({ leavesAtOnce: false });
    const first = dispatcher.send(BASE, UNINSTALL, signal);
    const second = expect(dispatcher.send(BASE, UNINSTALL, signal)).rejects.toMatchObject({
      code: 'Tunnel.NotConnected',
      message: 'command not sent: 1 command was about to leave for the base for 10000 ms',
    });
    await settle();
    clock.advance(10_000);
    await second;
    requests[0]?.resolve(ANSWER);
    await first;
    expect([requests.length, dispatcher.size]).toEqual([1, 0]);
  });

  it('sends nothing that waits when it is stopped', async () => {
    const { requests, dispatcher, signal } = createDispatcher({ leavesAtOnce: false });
    const ends = Array.from({ length: 10 }, () => dispatcher.send(BASE, UNINSTALL, signal).catch(({ code }) => code));
    await settle();
    const stopped = dispatcher.stop();
    requests[0]?.reject(new Error('stopped'));
    await stopped;
    expect(await Promise.all(ends)).toEqual([undefined, ...Array(9).fill('Tunnel.NotConnected')]);
    expect([requests.length, dispatcher.size]).toEqual([1, 0]);
  });

  it('ends what is under way and what waits when it is abandoned, and nothing else', async () => {
    const { requests, dispatcher, signal, clock } = createDispatcher({ leavesAtOnce: false });
    const ends = Array.from({ length: 10 }, () => dispatcher.send(BASE, UNINSTALL, signal).catch(({ code }) => code));
    const asked = dispatcher.send(BASE, LIST_COMMAND, signal).catch(({ message }) => message);
    await settle();
    expect(requests.map(({ command }) => command)).toEqual(['queryAllBiz', 'uninstallBiz']);
    dispatcher.abandon();
    const askedAgain = dispatcher.send(BASE, LIST_COMMAND, signal);
    expect(await Promise.all(ends)).toEqual([undefined, ...Array(9).fill('Tunnel.NotConnected')]);
    expect(await asked).toBe('all running commands were abandoned');
    const askedThrice = dispatcher.send(BASE, LIST_COMMAND, signal);
    expect(requests).toHaveLength(3);
    requests[2]?.resolve(ANSWER);
    await Promise.all([askedAgain, askedThrice]);
    expect([requests.length, dispatcher.size, clock.pending]).toEqual([3, 0, 0]);
  });

  it('does not send a command that was let in just before all were abandoned', async () => {
    const { requests, dispatcher, signal } = createDispatcher({ leavesAtOnce: false });
    const ends = [UNINSTALL, UNINSTALL].map((command) =>
      dispatcher.send(BASE, command, signal).catch(({ code }) => code),
    );
    await settle();
    requests[0]?.onLeft?.();
    dispatcher.abandon();
    expect(await Promise.all(ends)).toEqual([undefined, 'Tunnel.NotConnected']);
    expect(requests).toHaveLength(1);
  });

  it('tells since when a command was offered, however late an event loop took it: the base may have moved meanwhile', async () => {
    const { clock, requests, askedAt, dispatcher, signal } = createDispatcher();
    const sent = dispatcher.send(BASE, LIST_COMMAND, signal);
    await settle();
    clock.advance(8_000);
    requests[0]?.resolve(ANSWER);
    await sent;
    expect(askedAt).toEqual([0]);
  });

  it('keeps nothing of a base that has nothing under way, however it ended', async () => {
    const { requests, dispatcher, signal, clock } = createDispatcher();
    const sent = [UNINSTALL, UNINSTALL, LIST_COMMAND, LIST_COMMAND].map((command) =>
      dispatcher.send(BASE, command, signal).catch(() => {}),
    );
    await settle();
    expect(requests.map(({ command }) => command).sort()).toEqual(['queryAllBiz', 'uninstallBiz', 'uninstallBiz']);
    expect(dispatcher.size).toBeGreaterThan(0);
    requests[0]?.resolve(ANSWER);
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
