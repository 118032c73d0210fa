import { beforeEach, describe, expect, it } from 'vitest';
import { type MemberProcess, MemberWorld } from '../../support/lease-simulation/member-process.ts';
import { capturedLogger } from '../kube/support/rig.ts';

let world: MemberWorld;
let member: MemberProcess;

beforeEach(async () => {
  lines.length = 0;
  world = new MemberWorld(logger);
  member = world.start('a');
  await world.pass(1_000);
});

const { logger, lines } = capturedLogger();
const fenced = async (process: MemberProcess): Promise<number | undefined> =>
  (await process.metrics.fenced.get()).values[0]?.value;

const count = (process: MemberProcess, prefix: string): number =>
  process.requests.filter((request) => request.startsWith(prefix)).length;

describe('a member', () => {
  it('joins at once where there is no lease of its name, and is current when the watch has shown that', () => {
    expect(member.membership.isValid()).toBe(true);
    expect(member.membership.isCurrent()).toBe(true);
    expect(member.membership.term).toBe(1);
    expect(member.said).toEqual(['proven']);
    expect(world.annotationOf('a', 'state')).toBe('Active');
  });

  it('renews each second by one patch, and asks for nothing else', async () => {
    member.requests.length = 0;
    await world.pass(60_000);
    expect(new Set(member.requests.map((request) => request.split(' ')[0]))).toEqual(new Set(['patch']));
    expect(member.requests.length).toBeGreaterThanOrEqual(59);
    expect(member.requests.length).toBeLessThanOrEqual(61);
    expect(world.server.unguarded).toEqual([]);
  });

  it('sees another one come, change and end', async () => {
    const other = world.start('b');
    await world.pass(1_000);
    expect(member.members).toEqual(['a', 'b']);
    expect(member.membership.members()[1]).toEqual({
      id: 'b',
      nonce: 'b#1',
      address: 'b:7777',
      tunnels: ['mqtt', 'http'],
      isLeaving: false,
    });
    other.stopping.abort();
    await world.pass(100);
    expect(other.said).toContain('ended');
    expect(member.members).toEqual(['a']);
  });

  it('takes over at once from one that has left in good order', async () => {
    const other = world.start('b');
    await world.pass(3_000);
    member.said.length = 0;
    other.stopping.abort();
    await world.pass(100);
    expect(member.membership.stateOf('b', '1')).toBe('Gone');
    expect(member.said).toContain('proven');
  });

  it('gives one whose lease somebody else has deleted its time', async () => {
    const other = world.start('b');
    await world.pass(3_000);
    other.host.kill();
    world.server.drop(world.keyOf('b'));
    await world.pass(100);
    expect(member.membership.stateOf('b', '1')).toBe('Alive');
    await world.pass(9_000);
    expect(member.membership.stateOf('b', '1')).toBe('Gone');
  });

  it('writes at once that it leaves, and which tunnels are up', async () => {
    await world.pass(500);
    void member.membership.announce({ isLeaving: true });
    await world.pass(20);
    expect(world.annotationOf('a', 'state')).toBe('Leaving');
    void member.membership.announce({ tunnels: ['http'] });
    await world.pass(20);
    expect(world.annotationOf('a', 'tunnels')).toBe('http');
    expect(world.annotationOf('a', 'state')).toBe('Leaving');
  });

  it('does not keep the address of an earlier process of its name', async () => {
    member.host.kill();
    const next = world.start('a', { address: undefined });
    await world.pass(10_000);
    expect(next.membership.isValid()).toBe(true);
    expect(world.annotationOf('a', 'address')).toBeUndefined();
    next.requests.length = 0;
    await world.pass(10_000);
    expect(next.requests.length).toBeLessThanOrEqual(11);
  });

  it('renews twice a second at most while somebody alters what it says, and goes on', async () => {
    const patch = world.server.patch.bind(world.server);
    world.server.patch = (namespace, name, body) => {
      const patched = patch(namespace, name, body);
      world.server.put({
        ...patched,
        metadata: {
          ...patched.metadata,
          annotations: { ...patched.metadata.annotations, 'member.koupleless.io/tunnels': 'other' },
        },
      });
      return world.server.get(namespace, name);
    };
    member.requests.length = 0;
    let isAnnounced = false;
    void member.membership.announce({ isLeaving: true }).then(() => {
      isAnnounced = true;
    });
    await world.pass(10_000);
    expect(isAnnounced).toBe(true);
    expect(member.membership.isValid()).toBe(true);
    expect(member.requests.length).toBeGreaterThan(10);
    expect(member.requests.length).toBeLessThanOrEqual(21);
  });

  it('says that it has left, and deletes its lease, when it ends', async () => {
    member.requests.length = 0;
    member.stopping.abort();
    await world.pass(100);
    expect(member.requests.map((request) => request.split(' ')[0])).toEqual(['patch', 'delete']);
    expect(world.server.leases.has(world.keyOf('a'))).toBe(false);
    expect(member.membership.isValid()).toBe(false);
  });

  it('waits for nobody when the process before it has left, but could not delete its lease', async () => {
    member.stopping.abort();
    await world.pass(3);
    const left = world.server.leases.get(world.keyOf('a'));
    await world.pass(100);
    if (left) world.server.leases.set(world.keyOf('a'), left);
    expect(world.annotationOf('a', 'state')).toBe('Left');
    const next = world.start('a');
    await world.pass(500);
    expect(next.membership.isValid()).toBe(true);
  });
});

describe('a process whose CLIENT_ID has a lease', () => {
  it('of a dead one joins when that has not changed for 3.8 s', async () => {
    await world.pass(500);
    member.host.kill();
    const next = world.start('a');
    await world.pass(3_700);
    expect(next.membership.isValid()).toBe(false);
    await world.pass(1_300);
    expect(next.membership.isValid()).toBe(true);
    expect(next.membership.term).toBe(1);
    expect((await next.metrics.clientIdConflicts.get()).values[0]?.value ?? 0).toBe(0);
  });

  it('of a live one waits for as long as that lives, and says so once', async () => {
    const second = world.start('a');
    await world.pass(60_000);
    expect(second.membership.isValid()).toBe(false);
    expect(count(second, 'patch')).toBe(0);
    expect((await second.metrics.clientIdConflicts.get()).values[0]?.value).toBe(1);
    expect(member.membership.isValid()).toBe(true);
    member.host.kill();
    await world.pass(10_000);
    expect(second.membership.isValid()).toBe(true);
  });

  it('is not joined twice by two that wait for it', async () => {
    member.host.kill();
    const others = [world.start('a'), world.start('a')];
    await world.pass(30_000);
    expect(others.filter(({ membership }) => membership.isValid())).toHaveLength(1);
  });

  it('joins with its own lease when the answer to the creation was lost', async () => {
    const other = world.start('b');
    other.link.noise = { lost: 0, unanswered: 1, late: 0, cut: 0, refused: 0 };
    await world.pass(4_000);
    other.link.noise = { lost: 0, unanswered: 0, late: 0, cut: 0, refused: 0 };
    await world.pass(4_000);
    expect(other.membership.isValid()).toBe(true);
  });
});

describe('a member that was stopped', () => {
  it('ends with Cluster.ClientIdTaken when another process has its CLIENT_ID by then', async () => {
    member.host.stop(false);
    const next = world.start('a');
    await world.pass(9_000);
    expect(next.membership.isValid()).toBe(true);
    expect(member.membership.isValid()).toBe(false);
    member.host.resume();
    await world.pass(3_000);
    expect(member.said.slice(-2)).toEqual(['failed Cluster.ClientIdTaken', 'fenced']);
    expect(member.membership.isValid()).toBe(false);
    expect(next.membership.isValid()).toBe(true);
  });

  it('is fenced after 3.5 s by the monotonic clock, before any timer ran', async () => {
    await world.pass(1_000);
    member.host.stop(false);
    await world.pass(2_400);
    expect(member.membership.isValid()).toBe(true);
    await world.pass(1_200);
    expect(member.membership.isValid()).toBe(false);
    expect(member.said).not.toContain('fenced');
    member.host.resume();
    await world.pass(100);
    expect(member.said).toContain('fenced');
    expect(member.membership.term).toBe(2);
  });

  it('is fenced at once when the machine goes on, where the monotonic clock stood still with it for 6 s', async () => {
    member.host.stop(true);
    const before = member.host.now();
    await world.pass(6_000);
    expect(member.host.now()).toBe(before);
    expect(member.membership.isValid()).toBe(false);
    member.host.resume();
    expect(member.membership.isValid()).toBe(false);
    await world.pass(2_500);
    expect(member.membership.isValid()).toBe(true);
    expect(member.membership.term).toBe(2);
  });

  it('is fenced by boot time, where the machine slept and the monotonic clock with it', async () => {
    await world.pass(20_000);
    member.host.stop(true);
    await world.pass(60_000);
    expect(member.membership.isValid()).toBe(false);
    member.host.resume();
    await world.pass(2_500);
    expect(member.membership.isValid()).toBe(true);
    expect(member.membership.term).toBe(2);
    expect(member.said.filter((line) => line === 'fenced')).toHaveLength(1);
  });

  it('is not kept valid by a wall clock that is set back', async () => {
    member.host.stepWallClock(-3_600_000);
    await world.pass(3_000);
    member.link.breakage = 'Drops';
    await world.pass(5_100);
    expect(member.membership.isValid()).toBe(false);
  });
});

describe('a member whose wall clock is set', () => {
  it.each([3_600_000, -3_600_000, 6_000])('by %i ms, again and again, is a member all the time', async (stepMs) => {
    const seen = new Set<string>();
    world.timeline.onStep = () => seen.add(`valid=${member.membership.isValid()} term=${member.membership.term}`);
    for (let times = 0; times < 7; times++) {
      await world.pass(2_300);
      member.host.stepWallClock(stepMs);
    }
    await world.pass(10_000);
    expect([...seen]).toEqual(['valid=true term=1']);
    expect((await member.metrics.fences.get()).values[0]?.value ?? 0).toBe(0);
  });
});

describe('a member that cannot renew', () => {
  it.each(['Refuses', 'Drops'] as const)('is fenced and told so, and begins a new term (path %s)', async (breakage) => {
    member.link.breakage = breakage;
    await world.pass(7_100);
    expect(member.said).toContain('fenced');
    expect(member.membership.isValid()).toBe(false);
    member.link.breakage = undefined;
    await world.pass(3_000);
    expect(member.membership.term).toBe(2);
    expect(member.membership.isCurrent()).toBe(true);
  });

  it('is not fenced by one renewal without an answer: the next one follows at once', async () => {
    member.link.breakage = 'Drops';
    await world.pass(1_100);
    member.link.breakage = undefined;
    await world.pass(5_000);
    expect(member.said).not.toContain('fenced');
    expect(member.membership.term).toBe(1);
  });

  it('waits half a second before it asks an API server again that refuses at once', async () => {
    member.link.breakage = 'Refuses';
    await world.pass(1_100);
    member.requests.length = 0;
    await world.pass(10_000);
    expect(member.requests.length).toBeGreaterThanOrEqual(19);
    expect(member.requests.length).toBeLessThanOrEqual(20);
  });

  it('shows in its metrics that it is fenced, and how often it was', async () => {
    const fences = async (): Promise<number> => (await member.metrics.fences.get()).values[0]?.value ?? 0;
    expect([await fenced(member), await fences()]).toEqual([0, 0]);
    expect(await fenced(world.start('b'))).toBe(1);
    member.link.breakage = 'Refuses';
    await world.pass(7_100);
    expect([await fenced(member), await fences()]).toEqual([1, 1]);
    member.link.breakage = undefined;
    await world.pass(3_000);
    expect([await fenced(member), await fences()]).toEqual([0, 1]);
    member.stopping.abort();
    await world.pass(100);
    expect([await fenced(member), await fences()]).toEqual([1, 1]);
  });

  it('tries again every 0.5 s', async () => {
    member.link.breakage = 'Refuses';
    member.requests.length = 0;
    while (member.requests.length === 0) await world.pass(10);
    await world.pass(2_400);
    expect(member.requests).toHaveLength(5);
  });

  it('warns of that once for each outage', async () => {
    const warnings = (): number =>
      lines.filter(({ msg, level }) => msg === 'membership not renewed' && level === 40).length;
    for (const outages of [1, 2]) {
      member.link.breakage = 'Refuses';
      await world.pass(4_000);
      expect(warnings()).toBe(outages);
      member.link.breakage = undefined;
      await world.pass(4_000);
    }
  });

  it('is valid but not current while the watch has shown nothing of the new term', async () => {
    member.link.breakage = 'Refuses';
    member.watch.hang();
    await world.pass(7_000);
    member.link.breakage = undefined;
    await world.pass(1_500);
    expect(member.membership.isValid()).toBe(true);
    expect(member.membership.isCurrent()).toBe(false);
    member.watch.unhang();
    await world.pass(1_000);
    expect(member.membership.isCurrent()).toBe(true);
  });

  it('goes on from its own write when only the answer was lost', async () => {
    member.link.noise = { lost: 0, unanswered: 1, late: 0, cut: 0, refused: 0 };
    await world.pass(1_200);
    member.link.noise = { lost: 0, unanswered: 0, late: 0, cut: 0, refused: 0 };
    await world.pass(4_000);
    expect(member.membership.isValid()).toBe(true);
    expect(member.said).not.toContain('failed Cluster.ClientIdTaken');
  });

  it('makes its lease again when somebody has deleted it, and is valid all the time', async () => {
    world.server.drop(world.keyOf('a'));
    for (let step = 0; step < 40; step++) {
      await world.pass(100);
      expect(member.membership.isValid()).toBe(true);
    }
    expect(world.server.leases.has(world.keyOf('a'))).toBe(true);
    expect(member.membership.term).toBe(1);
  });
});

describe('another member that is silent', () => {
  let other: MemberProcess;

  beforeEach(async () => {
    other = world.start('b');
    await world.pass(10_000);
  });

  it('is gone after 3.8 s, and soon after', async () => {
    other.host.kill();
    await world.pass(2_700);
    expect(member.membership.stateOf('b', '1')).toBe('Alive');
    await world.pass(1_600);
    expect(member.membership.stateOf('b', '1')).toBe('Gone');
    expect(member.members).toEqual(['a']);
  });

  it('costs one renewal more', async () => {
    member.requests.length = 0;
    other.host.kill();
    await world.pass(4_300);
    expect(member.membership.stateOf('b', '1')).toBe('Gone');
    expect(count(member, 'patch')).toBeLessThanOrEqual(6);
  });

  it('is not gone for a lease that was written later than what is proven', async () => {
    other.host.kill();
    await world.pass(7_000);
    expect(member.membership.stateOf('b', String(world.server.version + 1))).toBe('Alive');
    await world.pass(2_100);
    expect(member.membership.stateOf('b', String(world.server.version - 1))).toBe('Gone');
  });

  it('is not gone while our own watch shows nothing', async () => {
    member.watch.hang();
    other.host.kill();
    await world.pass(14_000);
    expect(member.membership.stateOf('b', '1')).toBe('Alive');
  });

  it('is not gone at any moment while a list comes in that shows our own lease before the others', async () => {
    const states = new Set<string>();
    world.timeline.onStep = () => states.add(member.membership.stateOf('b', '1'));
    for (let times = 0; times < 8; times++) {
      member.watch.hang();
      await world.pass(9_000);
      member.watch.mustList = true;
      member.watch.cut();
      await world.pass(5_000);
    }
    expect([...states]).toEqual(['Alive']);
    expect(member.said).not.toContain('fenced');
  });

  it('is gone within 8 s where no renewal came through for about 3 s, whenever that was', async () => {
    for (const renewals of [1, 2, 3]) {
      const dead = world.start('c');
      await world.pass(10_000);
      dead.requests.length = 0;
      while (count(dead, 'patch') === 0) await world.pass(10);
      await world.pass(100);
      dead.host.kill();
      const killedAt = member.host.now();
      member.requests.length = 0;
      while (count(member, 'patch') < renewals) await world.pass(10);
      await world.pass(100);
      world.machine.breakage = 'Refuses';
      await world.pass(2_700);
      world.machine.breakage = undefined;
      await world.pass(8_000 - (member.host.now() - killedAt));
      expect([renewals, member.membership.stateOf('c', '1')]).toEqual([renewals, 'Gone']);
      expect(member.membership.stateOf('b', '1')).toBe('Alive');
      expect(member.membership.term).toBe(1);
      await world.pass(70_000);
    }
  });

  it('has 13.8 s after an outage for all, not 3.8', async () => {
    world.machine.breakage = 'Refuses';
    await world.pass(10_000);
    world.machine.breakage = undefined;
    other.host.kill();
    await world.pass(13_300);
    expect(member.membership.term).toBe(2);
    expect(member.membership.stateOf('b', '1')).toBe('Alive');
    await world.pass(4_000);
    expect(member.membership.stateOf('b', '1')).toBe('Gone');
  });

  it('has its lease deleted a minute later, by one of those who live', async () => {
    const third = world.start('c');
    await world.pass(1_000);
    other.host.kill();
    await world.pass(57_000);
    expect(world.server.leases.has(world.keyOf('b'))).toBe(true);
    await world.pass(10_000);
    expect(world.server.leases.has(world.keyOf('b'))).toBe(false);
    // The first by name.
    expect([count(member, 'delete'), count(third, 'delete')]).toEqual([1, 0]);
    expect(world.server.unguarded).toEqual([]);
    expect([...world.server.leases.keys()]).toHaveLength(2);
  });

  it('is back when it goes on', async () => {
    other.host.stop(false);
    await world.pass(10_000);
    expect(member.members).toEqual(['a']);
    other.host.resume();
    await world.pass(1_000);
    expect(member.members).toEqual(['a', 'b']);
    expect(other.members).toEqual(['a', 'b']);
  });
});
