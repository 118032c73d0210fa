import { describe, expect, it } from 'vitest';
import { PublishWindow } from '../../../../tunnels/mqtt/mqtt-session.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

type Acknowledge = (error?: Error) => void;

function openWindow(size: number) {
  const clock = new FakeClock();
  const sent: string[] = [];
  const acknowledge: Acknowledge[] = [];
  let stuckCount = 0;
  const window = new PublishWindow({
    clock,
    size,
    timeoutMs: 10_000,
    send: ({ payload }, acknowledged) => {
      sent.push(payload);
      acknowledge.push(acknowledged);
    },
    onStuck: () => {
      stuckCount++;
    },
  });
  const publish = (payload: string, mayLeave?: () => boolean): Promise<string> =>
    window.publish({ topic: 'topic', payload, ...(mayLeave && { mayLeave }) }).then(
      () => 'acknowledged',
      (error) => error.code,
    );
  return { clock, window, sent, acknowledge, publish, stuckCount: () => stuckCount };
}

describe('PublishWindow', () => {
  it('keeps at most its size unacknowledged and sends the rest in order', async () => {
    const { sent, acknowledge, publish } = openWindow(2);
    const ends = ['a', 'b', 'c', 'd'].map((payload) => publish(payload));
    expect(sent).toEqual(['a', 'b']);
    acknowledge[1]?.();
    expect(sent).toEqual(['a', 'b', 'c']);
    acknowledge[0]?.();
    acknowledge[2]?.();
    acknowledge[3]?.();
    expect(sent).toEqual(['a', 'b', 'c', 'd']);
    expect(await Promise.all(ends)).toEqual(Array(4).fill('acknowledged'));
  });

  it('tells apart what was written from what was not when the link drops', async () => {
    const { window, publish, clock } = openWindow(1);
    const ends = ['a', 'b'].map((payload) => publish(payload));
    window.close();
    expect(await Promise.all(ends)).toEqual(['Tunnel.SendFailed', 'Tunnel.NotConnected']);
    expect(await publish('c')).toBe('Tunnel.NotConnected');
    expect(clock.pending).toBe(0);
  });

  it('gives the room of a message out of time to nobody until its acknowledgement comes', async () => {
    const { clock, sent, acknowledge, publish } = openWindow(1);
    const first = publish('a');
    clock.advance(10_000);
    expect(await first).toBe('Tunnel.SendFailed');
    const second = publish('b');
    expect(sent).toEqual(['a']);
    acknowledge[0]?.();
    expect(sent).toEqual(['a', 'b']);
    acknowledge[1]?.();
    expect(await second).toBe('acknowledged');
  });

  it('calls the link stuck when a message finds no room in time, not when one is not acknowledged', async () => {
    const { clock, publish, stuckCount } = openWindow(1);
    const first = publish('a');
    clock.advance(5_000);
    const second = publish('b');
    clock.advance(9_999);
    expect(await first).toBe('Tunnel.SendFailed');
    expect(stuckCount()).toBe(0);
    clock.advance(1);
    expect(await second).toBe('Tunnel.NotConnected');
    expect(stuckCount()).toBe(1);
  });

  it('does not call the link of a broker stuck that acknowledges slowly, until it acknowledges no more', async () => {
    const { clock, sent, acknowledge, publish, stuckCount } = openWindow(1);
    const ends = ['a', 'b', 'c', 'd'].map((payload) => publish(payload));
    clock.advance(4_000);
    acknowledge[0]?.();
    clock.advance(4_000);
    acknowledge[1]?.();
    const last = publish('e');
    clock.advance(2_000);
    expect(stuckCount()).toBe(0);
    expect(await Promise.all(ends)).toEqual([
      'acknowledged',
      'acknowledged',
      'Tunnel.SendFailed',
      'Tunnel.NotConnected',
    ]);
    clock.advance(7_999);
    expect(stuckCount()).toBe(0);
    clock.advance(1);
    expect(stuckCount()).toBe(1);
    expect(await last).toBe('Tunnel.NotConnected');
    expect(sent).toEqual(['a', 'b', 'c']);
  });

  it('asks for each message when there is room for it, and writes the next one in place of one that may not leave', async () => {
    const { sent, acknowledge, publish, window, clock } = openWindow(1);
    let mayLeave = true;
    const ends = [publish('a', () => mayLeave), publish('b', () => mayLeave), publish('c')];
    expect(sent).toEqual(['a']);
    mayLeave = false;
    acknowledge[0]?.();
    expect(sent).toEqual(['a', 'c']);
    expect(window.unacknowledgedCount).toBe(1);
    acknowledge[1]?.();
    expect(await Promise.all(ends)).toEqual(['acknowledged', 'Tunnel.NotConnected', 'acknowledged']);
    expect([window.unacknowledgedCount, clock.pending]).toEqual([0, 0]);
  });

  it('counts a message out of time among those that may be on their way', async () => {
    const { clock, window, acknowledge, publish } = openWindow(1);
    const sent = publish('a');
    clock.advance(10_000);
    expect(await sent).toBe('Tunnel.SendFailed');
    expect(window.unacknowledgedCount).toBe(1);
    acknowledge[0]?.();
    expect(window.unacknowledgedCount).toBe(0);
  });

  it('passes the refusal of the broker on and goes on', async () => {
    const { acknowledge, publish, sent } = openWindow(1);
    const ends = ['a', 'b'].map((payload) => publish(payload));
    acknowledge[0]?.(new Error('not authorized'));
    expect(sent).toEqual(['a', 'b']);
    acknowledge[1]?.();
    expect(await Promise.all(ends)).toEqual(['Tunnel.SendFailed', 'acknowledged']);
  });
});
