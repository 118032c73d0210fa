import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/logger.ts';
import { Manager, type Runnable } from '../../src/manager.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';

const GRACE_MS = 10_000;

class ManagerRig {
  readonly clock = new FakeClock();
  readonly told: string[] = [];
  readonly abort = new AbortController();

  /** A part that tells of its start and, after `stopMs`, of its end. */
  part(name: string, { stopMs = 0, ready }: { stopMs?: number; ready?: Promise<unknown> } = {}): Runnable {
    const run = async (signal: AbortSignal): Promise<void> => {
      this.told.push(`start ${name}`);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      this.told.push(`stop ${name}`);
      if (stopMs > 0) await new Promise<void>((resolve) => this.clock.setTimer(resolve, stopMs));
      this.told.push(`end ${name}`);
    };
    return ready !== undefined ? { name, run, whenReady: () => ready } : { name, run };
  }

  failing(name: string, failed: Promise<never>): Runnable {
    return { name, run: () => failed };
  }

  run(...groups: Runnable[][]): Promise<void> {
    const { clock } = this;
    return new Manager({ groups, graceMs: GRACE_MS, clock, logger: silentLogger }).run(this.abort.signal);
  }
}

describe('the manager', () => {
  it('starts groups in order and stops them in the reverse one, each after the end of the one above', async () => {
    const rig = new ManagerRig();
    const running = rig.run([rig.part('a')], [rig.part('b', { stopMs: 5 })], [rig.part('c')]);
    await settle();
    expect(rig.told.splice(0)).toEqual(['start a', 'start b', 'start c']);
    rig.abort.abort();
    await rig.clock.advanceAsync(5);
    await running;
    expect(rig.told).toEqual(['stop c', 'end c', 'stop b', 'end b', 'stop a', 'end a']);
  });

  it('starts a group only when the one before is ready', async () => {
    const rig = new ManagerRig();
    const ready = Promise.withResolvers<void>();
    const running = rig.run([rig.part('a', { ready: ready.promise })], [rig.part('b')]);
    await settle();
    expect(rig.told).toEqual(['start a']);
    ready.resolve();
    await settle();
    expect(rig.told).toEqual(['start a', 'start b']);
    rig.abort.abort();
    await running;
  });

  it('starts nothing more when it is stopped while a group gets ready', async () => {
    const rig = new ManagerRig();
    const ready = Promise.withResolvers<void>();
    const running = rig.run([rig.part('a', { ready: ready.promise })], [rig.part('b')]);
    await settle();
    rig.abort.abort();
    ready.resolve();
    await running;
    expect(rig.told).toEqual(['start a', 'stop a', 'end a']);
  });

  it('stops while a part waits for what never comes', async () => {
    const rig = new ManagerRig();
    const never = new Promise(() => {});
    const running = rig.run([rig.part('a', { ready: never })], [rig.part('b')]);
    await settle();
    rig.abort.abort();
    await running;
    expect(rig.told).toEqual(['start a', 'stop a', 'end a']);
  });

  it('starts nothing when it was stopped before', async () => {
    const rig = new ManagerRig();
    rig.abort.abort();
    await rig.run([rig.part('a')]);
    expect(rig.told).toEqual([]);
  });

  it('stops all parts and fails with the error of the one that failed', async () => {
    const rig = new ManagerRig();
    const failure = Promise.withResolvers<never>();
    const running = rig.run([rig.part('a')], [rig.failing('b', failure.promise)]);
    await settle();
    failure.reject(new Error('port taken'));
    await expect(running).rejects.toThrow('port taken');
    expect(rig.told).toEqual(['start a', 'stop a', 'end a']);
  });

  it('counts a part that ends by itself as failed', async () => {
    const rig = new ManagerRig();
    const running = rig.run([rig.part('a')], [{ name: 'b', run: () => Promise.resolve() }]);
    await expect(running).rejects.toThrow('b ended unexpectedly');
    expect(rig.told).toEqual(['start a', 'stop a', 'end a']);
  });

  it('stops what runs when a part cannot get ready', async () => {
    const rig = new ManagerRig();
    const running = rig.run([rig.part('a', { ready: Promise.reject(new Error('no cache')) })], [rig.part('b')]);
    await expect(running).rejects.toThrow('no cache');
    expect(rig.told).toEqual(['start a', 'stop a', 'end a']);
  });

  it('starts branches side by side, each group by group: one that waits holds up no other', async () => {
    const rig = new ManagerRig();
    const gate = Promise.withResolvers<void>();
    const waiting = [[rig.part('waits', { ready: gate.promise })], [rig.part('late')]];
    const branches = [waiting, [[rig.part('first')], [rig.part('second')]]];
    const { clock } = rig;
    const options = { groups: [[rig.part('below')]], branches, graceMs: GRACE_MS, clock, logger: silentLogger };
    const ended = new Manager(options).run(rig.abort.signal);
    await settle();
    expect(rig.told).toEqual(['start below', 'start waits', 'start first', 'start second']);
    gate.resolve();
    await settle();
    expect(rig.told.at(-1)).toBe('start late');
    rig.abort.abort();
    await ended;
    expect(rig.told.at(-1)).toBe('end below');
  });

  it('waits for all parts together no longer than the grace time, and still stops those below', async () => {
    const rig = new ManagerRig();
    const running = rig.run([rig.part('a')], [rig.part('slow', { stopMs: 3_600_000 })]);
    await settle();
    rig.abort.abort();
    let isOver = false;
    void running.then(() => (isOver = true));
    await rig.clock.advanceAsync(GRACE_MS - 1);
    expect(isOver).toBe(false);
    await rig.clock.advanceAsync(1);
    await running;
    expect(rig.told).toContain('stop a');
  });
});
