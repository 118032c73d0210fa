import { describe, expect, it } from 'vitest';
import { CommandSlots } from '../../../../tunnels/http/command-slots.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const MAX_WAIT_MS = 10_000;

const createPlaces = () => {
  const clock = new FakeClock();
  return { clock, places: new CommandSlots({ clock, size: 2, what: 'commands were in work' }) };
};

describe('CommandSlots', () => {
  it('lets the longest waiting in when one is given back', async () => {
    const { places, clock } = createPlaces();
    const first = await places.take('a', MAX_WAIT_MS);
    await places.take('a', MAX_WAIT_MS);
    const admitted: number[] = [];
    const enter = async (id: number): Promise<() => void> => {
      const release = await places.take('a', MAX_WAIT_MS);
      admitted.push(id);
      return release;
    };
    const second = enter(2);
    const third = enter(3);
    first();
    const release = await second;
    expect(admitted).toEqual([2]);
    release();
    await third;
    expect(admitted).toEqual([2, 3]);
    expect(clock.pending).toBe(0);
  });

  it('lets nobody wait longer than told', async () => {
    const { places, clock } = createPlaces();
    await places.take('a', MAX_WAIT_MS);
    await places.take('a', MAX_WAIT_MS);
    const third = places.take('a', MAX_WAIT_MS);
    const refused = expect(third).rejects.toMatchObject({
      code: 'Tunnel.NotConnected',
      message: 'command not sent: 2 commands were in work for 10000 ms',
    });
    clock.advance(9_999);
    await settle();
    clock.advance(1);
    await refused;
  });

  it('keeps keys apart, and forgets those that nobody uses', async () => {
    const { places } = createPlaces();
    const held = [
      await places.take('a', MAX_WAIT_MS),
      await places.take('a', MAX_WAIT_MS),
      await places.take('b', MAX_WAIT_MS),
    ];
    expect(places.lineCount).toBe(2);
    for (const release of held) release();
    expect(places.lineCount).toBe(0);
  });

  it('takes a place back once, however often it is given', async () => {
    const { places } = createPlaces();
    const first = await places.take('a', MAX_WAIT_MS);
    const second = await places.take('a', MAX_WAIT_MS);
    for (let count = 0; count < 3; count++) first();
    expect(places.lineCount).toBe(1);
    second();
    expect(places.lineCount).toBe(0);
  });

  it('sends all away who wait when it is over, and still takes places back', async () => {
    const { places, clock } = createPlaces();
    const held = [await places.take('a', MAX_WAIT_MS), await places.take('a', MAX_WAIT_MS)];
    const waiting = [places.take('a', MAX_WAIT_MS), places.take('a', MAX_WAIT_MS)];
    const refused = waiting.map((place) => expect(place).rejects.toMatchObject({ code: 'Tunnel.NotConnected' }));
    places.giveUp('over');
    await Promise.all(refused);
    for (const release of held) release();
    expect([places.lineCount, clock.pending]).toEqual([0, 0]);
  });
});
