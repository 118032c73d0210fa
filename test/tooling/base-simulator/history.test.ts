import { beforeEach, describe, expect, it } from 'vitest';
import { CommandHistory, type CommandRecord } from '../../../samples/base-simulator/history.ts';
import type { BizState, Outcome } from '../../../samples/base-simulator/model.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { BIZ, startRig } from './rig.ts';

let clock: FakeClock;
let history: CommandHistory;

beforeEach(() => {
  clock = new FakeClock();
  history = new CommandHistory({ clock });
});

function receive(base: string, command: string, bizName?: string, stateAtReceipt?: BizState): CommandRecord {
  const module = bizName === undefined ? {} : { bizName, bizVersion: '1' };
  return history.receive({ base, command, ...module, ...(stateAtReceipt === undefined ? {} : { stateAtReceipt }) });
}

function record(base: string, command: string, outcome: Outcome, bizName?: string): void {
  history.finish(receive(base, command, bizName), outcome);
}

describe('CommandHistory', () => {
  it('holds when a command came, when it ended and how', () => {
    const received = receive('base-1', 'installBiz', 'biz1');
    const receivedAt = clock.wallTime().getTime();
    expect(history.records()).toEqual([
      {
        sequence: 0,
        base: 'base-1',
        command: 'installBiz',
        bizName: 'biz1',
        bizVersion: '1',
        receivedAt,
        outcome: 'in work',
      },
    ]);
    clock.advance(800);
    history.finish(received, 'executed');
    expect(history.records()[0]).toMatchObject({ outcome: 'executed', finishedAt: receivedAt + 800 });
  });

  it('counts executed installs per module and base, by command and by baseline', () => {
    record('base-1', 'installBiz', 'executed', 'biz1');
    record('base-1', 'batchInstallBiz', 'executed', 'biz1');
    record('base-1', 'installBiz', 'refused:REPEAT_BIZ', 'biz1');
    record('base-1', 'uninstallBiz', 'executed', 'biz1');
    record('base-2', 'installBiz', 'executed', 'biz1');
    receive('base-2', 'installBiz', 'biz2');
    expect(history.installsExecuted()).toHaveLength(3);
    expect(history.installsExecuted({ base: 'base-2' })).toHaveLength(1);
    expect(history.installCounts()).toEqual([
      { base: 'base-1', bizName: 'biz1', bizVersion: '1', count: 2 },
      { base: 'base-2', bizName: 'biz1', bizVersion: '1', count: 1 },
    ]);
  });

  it('finds installs that came while the module was active or in work', () => {
    for (const state of ['ACTIVATED', 'RESOLVED', 'BROKEN', undefined] as const) {
      receive('base-1', 'installBiz', `was-${state}`, state);
      receive('base-1', 'uninstallBiz', `was-${state}`, state);
    }
    expect(history.installsWhileActiveOrInWork().map((one) => one.bizName)).toEqual(['was-ACTIVATED', 'was-RESOLVED']);
  });

  it('counts commands per base and kind since a mark', () => {
    record('base-1', 'health', 'executed');
    const mark = history.mark();
    expect(history.commandCounts(mark).size).toBe(0);
    for (const command of ['health', 'health', 'queryAllBiz', 'switchBiz']) record('base-1', command, 'executed');
    record('base-2', 'installBiz', 'failed', 'biz1');
    const none = { installBiz: 0, uninstallBiz: 0, queryAllBiz: 0, health: 0, batchInstallBiz: 0 };
    expect(Object.fromEntries(history.commandCounts(mark))).toEqual({
      'base-1': { ...none, health: 2, queryAllBiz: 1 },
      'base-2': { ...none, installBiz: 1 },
    });
    expect(history.commandCounts().get('base-1')?.health).toBe(3);
  });

  it('keeps marks valid over clear and over its limit', () => {
    history = new CommandHistory({ clock, limit: 5 });
    for (let index = 0; index < 4; index += 1) record('base-1', 'health', 'executed');
    history.clear();
    const mark = history.mark();
    expect(mark).toBe(4);
    for (let index = 0; index < 8; index += 1) record('base-1', 'health', 'executed');
    expect(history.records({ since: mark })).toHaveLength(8);
    expect(history.records({ since: mark + 3 })).toHaveLength(5);
    for (let index = 0; index < 8; index += 1) record('base-1', 'health', 'executed');
    expect(history.mark()).toBe(20);
    expect(history.records().length).toBeGreaterThanOrEqual(5);
    expect(history.records().length).toBeLessThanOrEqual(10);
    expect(history.records({ since: 18 }).map((one) => one.sequence)).toEqual([18, 19]);
  });

  it('waits for commands to end, those of before included', async () => {
    record('base-1', 'installBiz', 'executed', 'biz1');
    const second = receive('base-1', 'installBiz', 'biz2');
    let isDone = false;
    const wait = history.waitFor({ command: 'installBiz', outcome: 'executed' }, { count: 2 });
    void wait.then(() => {
      isDone = true;
    });
    record('base-1', 'installBiz', 'failed', 'biz3');
    await clock.advanceAsync(10);
    expect(isDone).toBe(false);
    history.finish(second, 'executed');
    expect((await wait).map((one) => one.bizName)).toEqual(['biz1', 'biz2']);
    expect(clock.pending).toBe(0);
  });

  it('says what is missing when a wait ends', async () => {
    const wait = history.waitFor({ base: 'base-1' }, { count: 2, timeoutMs: 100 });
    record('base-1', 'health', 'executed');
    const failure = expect(wait).rejects.toThrow('1 commands that match {"base":"base-1"} missing after 100 ms');
    await clock.advanceAsync(100);
    await failure;
  });

  it('tells listeners when a command comes and when it ends, until they leave', () => {
    const heard: string[] = [];
    const leave = history.subscribe(({ outcome }) => heard.push(outcome));
    record('base-1', 'health', 'executed');
    leave();
    record('base-1', 'health', 'executed');
    expect(heard).toEqual(['in work', 'executed']);
  });

  it('records commands on the wire with message id, state at receipt and outcome', async () => {
    const rig = await startRig({ installMs: 20 });
    try {
      for (const version of ['1.0.0', '1.0.0', '2.0.0']) {
        rig.controller.send('base-1', 'installBiz', { ...BIZ, bizVersion: version });
      }
      rig.controller.send('base-1', 'uninstallBiz', { bizName: 'nobody', bizVersion: '1' });
      rig.controller.send('base-1', 'installBiz', 'not json');
      rig.controller.send('base-1', 'installBiz', {});
      rig.controller.send('base-1', 'switchBiz', BIZ);
      rig.controller.send('base-1', 'baseline', '{}');
      await rig.fleet.history.waitFor({ outcome: 'executed' }, { count: 2 });
      rig.controller.send('base-1', 'installBiz', BIZ);
      await rig.fleet.history.waitFor({ outcome: 'refused:REPEAT_BIZ' });
      const seen = rig.fleet.history.records();
      expect(seen.map((one) => [one.command, one.bizVersion, one.stateAtReceipt, one.outcome])).toEqual([
        ['installBiz', '1.0.0', undefined, 'executed'],
        ['installBiz', '1.0.0', 'RESOLVED', 'refused:conflict'],
        ['installBiz', '2.0.0', undefined, 'executed'],
        ['uninstallBiz', '1', undefined, 'refused:NOT_FOUND_BIZ'],
        ['installBiz', undefined, undefined, 'ignored:unparsable'],
        ['installBiz', undefined, undefined, 'refused:invalid'],
        ['switchBiz', undefined, undefined, 'ignored:unsupported'],
        ['baseline', undefined, undefined, 'ignored:unparsable'],
        ['installBiz', '1.0.0', 'ACTIVATED', 'refused:REPEAT_BIZ'],
      ]);
      expect(new Set(seen.map((one) => one.requestMessageId)).size).toBe(seen.length);
      expect(seen.every((one) => Number.isInteger(one.requestMessageId))).toBe(true);
    } finally {
      await rig.stop();
    }
  });
});
