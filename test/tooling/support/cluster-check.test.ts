import { describe, expect, it } from 'vitest';
import { nodesNotReady, violationsOf } from '../../support/cluster/check.ts';
import { commandsOfOthers, writesOfOthers } from '../../support/cluster/check-leaders.ts';
import { executedTwice, uninstalledThoughWanted } from '../../support/cluster/check-modules.ts';
import type { ClusterFacts } from '../../support/cluster/facts.ts';
import { sentAt } from '../../support/cluster/pauses.ts';
import { reportOf } from '../../support/cluster/report.ts';
import { holderAt, tenuresOf } from '../../support/cluster/tenures.ts';
import { at, command, facts, lease, node, operation, pod, renewals } from './cluster-facts.ts';

const texts = (violations: readonly { text: string }[]): string[] => violations.map(({ text }) => text);

/** r0 holds b1 from 0, r1 from 10 s. */
const TAKEN = [lease(0, 'r0'), lease(5_000, 'r0', { acquiredAt: at(0) }), lease(10_000, 'r1')];

describe('tenures', () => {
  it('begin when the holder wrote them, whenever they were seen, and end with the next', () => {
    const tenures = tenuresOf([...TAKEN, lease(0, 'r2', { base: 'b2' })]);
    expect(tenures.get('b1')).toEqual([
      { base: 'b1', holder: 'r0', from: at(0), to: at(10_000) },
      { base: 'b1', holder: 'r1', from: at(10_000), to: Number.POSITIVE_INFINITY },
    ]);
    expect(holderAt(tenures.get('b1'), at(9_999))?.holder).toBe('r0');
    expect(holderAt(tenures.get('b1'), at(10_000))?.holder).toBe('r1');
    expect(holderAt(tenures.get('b2'), at(-1))).toBeUndefined();
  });

  it('end when a lease is released or goes, at the best time that is known', () => {
    const released = lease(10_000, '', { acquiredAt: at(0), renewedAt: at(10_000) });
    expect(tenuresOf([lease(0, 'r0'), released]).get('b1')?.[0]?.to).toBe(at(10_000));
    const silent = lease(10_000, '', { acquiredAt: at(0), renewedAt: at(0) });
    expect(tenuresOf([lease(0, 'r0'), silent]).get('b1')?.[0]?.to).toBe(at(10_005));
    const gone = lease(10_000, 'r0', { isGone: true });
    expect(
      tenuresOf([lease(0, 'r0'), gone])
        .get('b1')
        ?.at(-1),
    ).toMatchObject({ holder: '', from: at(10_005) });
  });
});

describe('the time at which something was sent', () => {
  it('is that of its arrival, where the test ran on', () => {
    const pauses = [
      { from: 100, to: 200 },
      { from: 1_001, to: 2_000 },
    ];
    expect(sentAt(1_000, pauses)).toBe(1_000);
    expect(sentAt(1_000, [])).toBe(1_000);
  });

  it('is before each pause that it may have met, one after the other', () => {
    const pauses = [
      { from: 100, to: 200 },
      { from: 400, to: 600 },
      { from: 650, to: 900 },
      { from: 990, to: 1_005 },
    ];
    expect(sentAt(1_000, pauses)).toBe(400);
  });
});

describe('two leaders', () => {
  it('are not seen where each commands while it holds the lease, nor in the quarter of a second after', () => {
    const commands = [command(1, 'r0'), command(10_250, 'r0'), command(10_001, 'r1')];
    expect(commandsOfOthers(facts({ leases: TAKEN, commands }))).toEqual([]);
  });

  it('are told by a command that came later', () => {
    const commands = [command(10_251, 'r0', { command: 'health', module: '' })];
    expect(texts(commandsOfOthers(facts({ leases: TAKEN, commands })))).toEqual([
      'r0 sent health to b1 251 ms after r1 had the lease',
    ]);
  });

  it('are told by a command that came before the lease was had, or without one', () => {
    const commands = [command(9_990, 'r1'), command(20_000, 'r2'), command(1, 'r0', { base: 'b9' })];
    expect(texts(commandsOfOthers(facts({ leases: TAKEN, commands })))).toEqual([
      'r1 sent installBiz m:1 to b1 10 ms before it had the lease',
      'r2 sent installBiz m:1 to b1 and never had the lease',
      'r0 sent installBiz m:1 to b9 and never had the lease',
    ]);
  });

  it('are not told by a question for the health of a base that nobody leads yet, and by every other command', () => {
    const question = { command: 'health', module: '' };
    const first = [command(249, 'r1', question), command(5_000, 'r1', { base: 'b9', ...question })];
    expect(commandsOfOthers(facts({ leases: TAKEN, commands: first }))).toEqual([]);
    const list = { command: 'queryAllBiz', module: '' };
    const late = [command(250, 'r1', question), command(249, 'r1'), command(249, 'r1', list)];
    expect(commandsOfOthers(facts({ leases: TAKEN, commands: late }))).toHaveLength(3);
  });

  it('are not seen where the test itself stood still on the way', () => {
    const commands = [command(10_900, 'r0')];
    const pauses = [{ from: at(10_240), to: at(10_901) }];
    expect(commandsOfOthers(facts({ leases: TAKEN, commands, pauses }))).toEqual([]);
    expect(commandsOfOthers(facts({ leases: TAKEN, commands }))).toHaveLength(1);
  });

  it('may have so many commands in flight as are allowed, of that replica, and none more', () => {
    const commands = [command(11_000, 'r0'), command(11_001, 'r0'), command(11_002, 'r2')];
    const found = commandsOfOthers(facts({ leases: TAKEN, commands }), { allowedLate: { r0: 1 } });
    expect(found.map((violation) => violation.at)).toEqual([at(11_001), at(11_002)]);
  });

  it('are not told by the questions of the same turn, but by those of a later one and by every change', () => {
    const question = (since: number, base: string) =>
      command(since, 'r0', { base, command: 'queryAllBiz', module: '' });
    const leases = [...TAKEN, lease(0, 'r0', { base: 'b2' }), lease(10_000, 'r1', { base: 'b2' })];
    const allowed = { allowedLate: { r0: 1 } };
    const commands = [question(11_000, 'b1'), question(11_001, 'b2'), command(11_002, 'r0'), question(11_020, 'b1')];
    const found = commandsOfOthers(facts({ leases, commands }), allowed);
    expect(found.map((violation) => violation.at)).toEqual([at(11_002), at(11_020)]);
    expect(commandsOfOthers(facts({ leases, commands }))).toHaveLength(4);
  });

  it('are forgotten before the time that is asked for', () => {
    const commands = [command(11_000, 'r0')];
    expect(commandsOfOthers(facts({ leases: TAKEN, commands }), { since: at(11_001) })).toEqual([]);
  });

  it('may both have had the lease, one after the other and back', () => {
    const back = [...TAKEN, lease(20_000, 'r0')];
    expect(commandsOfOthers(facts({ leases: back, commands: [command(20_001, 'r0')] }))).toEqual([]);
    expect(commandsOfOthers(facts({ leases: back, commands: [command(19_000, 'r0')] }))).toHaveLength(1);
  });
});

describe('a fenced leader', () => {
  const leases = [lease(0, 'r0')];
  const renewed = [{ replica: 'r0', at: at(0) }];

  it('is one that commands more than 3.5 s after its last renewal, though it holds the lease', () => {
    const commands = [command(3_750, 'r0'), command(3_751, 'r0')];
    expect(texts(commandsOfOthers(facts({ leases, commands, renewals: renewed })))).toEqual([
      'r0 sent installBiz m:1 to b1 3751 ms after it last renewed its membership',
    ]);
  });

  it('is one that was never a member; a renewal that comes later proves nothing', () => {
    const later = [{ replica: 'r0', at: at(2_000) }];
    const found = commandsOfOthers(facts({ leases, commands: [command(1_000, 'r0')], renewals: later }));
    expect(texts(found)).toEqual(['r0 sent installBiz m:1 to b1 without a membership']);
  });
});

describe('executed twice', () => {
  it('is not said of an install for each Pod, one after the other', () => {
    const pods = [pod(0), pod(1_000, { deletedAt: at(1_000) }), pod(2_000, { name: 'p2', uid: 'uid-2' })];
    const operations = [operation(10), operation(1_500, { command: 'uninstallBiz' }), operation(2_010)];
    expect(executedTwice(facts({ pods, operations }))).toEqual([]);
  });

  it('is said of two installs for one Pod', () => {
    const operations = [operation(10), operation(500, { command: 'uninstallBiz' }), operation(900)];
    expect(texts(executedTwice(facts({ pods: [pod(0)], operations })))).toEqual([
      'm:1 was installed 2 times for 1 Pods and 0 restarts',
    ]);
  });

  it('is not said where the base was restarted in between', () => {
    const operations = [operation(10), operation(900)];
    const restarts = [{ base: 'b1', at: at(800) }];
    expect(executedTwice(facts({ pods: [pod(0)], operations, restarts }))).toEqual([]);
  });

  it.each(['ACTIVATED', 'RESOLVED'])('is said of an install of what is %s, whatever the base made of it', (state) => {
    const operations = [operation(10), operation(20, { stateAtReceipt: state, outcome: 'refused:REPEAT_BIZ' })];
    const found = facts({ pods: [pod(0)], operations });
    expect(texts(executedTwice(found))).toEqual([`install of m:1, which was ${state}: refused:REPEAT_BIZ`]);
    expect(executedTwice(found, { allowedLate: { r0: 1 } })).toEqual([]);
  });

  it('is not excused where the base did install what it had', () => {
    const operations = [operation(20, { stateAtReceipt: 'ACTIVATED' })];
    const found = executedTwice(facts({ pods: [pod(0)], operations }), { allowedLate: { r0: 1 } });
    expect(found).toHaveLength(1);
  });
});

describe('uninstalled though wanted', () => {
  const uninstall = operation(10_000, { command: 'uninstallBiz' });

  it('is said where a Pod on that Node wants the module before and after', () => {
    expect(texts(uninstalledThoughWanted(facts({ pods: [pod(0)], operations: [uninstall] })))).toEqual([
      'm:1, which Pod p1 wants: executed',
    ]);
  });

  it.each([
    ['is on another Node', [pod(0, { nodeName: 'vnode.b2' })]],
    ['wants another version', [pod(0, { modules: ['m:2'] })]],
    ['is being deleted', [pod(0), pod(9_000, { deletedAt: at(9_000) })]],
    ['is deleted at that moment', [pod(0), pod(10_500, { deletedAt: at(10_000) })]],
    ['has failed', [pod(0), pod(9_000, { isOver: true })]],
    ['is gone', [pod(0), pod(9_000, { isGone: true })]],
    ['was bound a moment before', [pod(0, { nodeName: '' }), pod(9_900)]],
    ['was bound afterwards', [pod(10_100)]],
  ])('is not said of a Pod that %s', (_what, pods) => {
    expect(uninstalledThoughWanted(facts({ pods, operations: [uninstall] }))).toEqual([]);
  });
});

describe('a Node that is not Ready', () => {
  it('is told each time, once it was Ready', () => {
    const nodes = [
      node(0, 'None'),
      node(1, 'Unknown'),
      node(2, 'True'),
      node(3, 'Unknown', { reason: 'NodeStatusUnknown' }),
    ];
    expect(texts(nodesNotReady(facts({ nodes })))).toEqual(['vnode.b1 was Ready=Unknown NodeStatusUnknown']);
  });

  it('is also one that was deleted', () => {
    const nodes = [node(0, 'True'), node(1, 'True', { isGone: true })];
    expect(texts(nodesNotReady(facts({ nodes })))).toEqual(['vnode.b1 was deleted']);
  });
});

describe('a status write by a fenced replica', () => {
  const write = (ms: number, replica: string, more: object = {}) =>
    ({ replica, resource: 'nodes', name: 'vnode.b1', at: at(ms), ...more }) as const;

  it('is one after another replica has had the lease for more than a quarter of a second', () => {
    const writes = [write(9_000, 'r0'), write(10_250, 'r0'), write(10_251, 'r0'), write(10_251, 'r1')];
    expect(texts(writesOfOthers(facts({ leases: TAKEN, writes })))).toEqual([
      'r0 wrote the status of vnode.b1 (b1) 251 ms after r1 had the lease',
    ]);
  });

  it('is found by the Node of a Pod', () => {
    const pods = [pod(0, { nodeName: '' }), pod(1)];
    const writes = [write(11_000, 'r0', { resource: 'pods', name: 'p1' })];
    expect(writesOfOthers(facts({ leases: TAKEN, writes, pods }))).toHaveLength(1);
  });

  it('is not one where the test itself stood still on the way', () => {
    const pauses = [{ from: at(10_250), to: at(10_950) }];
    expect(writesOfOthers(facts({ leases: TAKEN, writes: [write(11_000, 'r0')], pauses }))).toEqual([]);
  });

  it('is not one while nobody holds the lease', () => {
    const leases = [...TAKEN, lease(20_000, '')];
    expect(writesOfOthers(facts({ leases, writes: [write(21_000, 'r0')] }))).toEqual([]);
  });
});

describe('the report', () => {
  const wrong: ClusterFacts = facts({
    leases: TAKEN,
    commands: [command(10_600, 'r0'), command(50_000, 'r1', { command: 'health', module: '' })],
    operations: [operation(10_600, { stateAtReceipt: 'ACTIVATED', outcome: 'refused:REPEAT_BIZ' })],
    pods: [pod(0)],
    nodes: [node(0, 'True')],
    notes: [{ text: 'SIGSTOP of r0', at: at(2_000) }],
  });

  it('is empty where everything was kept', () => {
    const right = facts({ leases: TAKEN, commands: [command(1, 'r0')], pods: [pod(0)], operations: [operation(1)] });
    expect(reportOf(right, violationsOf(right))).toBe('');
  });

  it('shows each violation on a timeline of what happened to its base around it', () => {
    const text = reportOf(wrong, violationsOf(wrong));
    expect(text.split('\n')).toEqual([
      '2 violations (two leaders: 1, executed twice: 1)',
      '',
      'b1',
      '00:00:00.000  -10600 ms lease held by r0 (0), seen 5 ms later',
      '00:00:02.000   -8600 ms SIGSTOP of r0',
      '00:00:10.000    -600 ms lease held by r1 (0), seen 5 ms later',
      '00:00:10.600       0 ms r0 -> installBiz m:1',
      '00:00:10.600       0 ms base installBiz m:1 ACTIVATED: refused:REPEAT_BIZ',
      '00:00:10.600       0 ms >>> two leaders: r0 sent installBiz m:1 to b1 600 ms after r1 had the lease',
      '00:00:10.600       0 ms >>> executed twice: install of m:1, which was ACTIVATED: refused:REPEAT_BIZ',
    ]);
  });

  it('shows the first five moments, and counts all', () => {
    const commands = Array.from({ length: 9 }, (_, index) => command(20_000 + 2_000 * index, 'r0'));
    const many = facts({ leases: TAKEN, commands, renewals: renewals('r0', 'r1') });
    const text = reportOf(many, violationsOf(many));
    expect(text).toMatch(/^9 violations \(two leaders: 9\)\n/);
    expect(text.match(/>>>/g)).toHaveLength(5);
  });
});
