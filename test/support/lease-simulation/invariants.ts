import { FENCE_AFTER_MS } from '../../../src/lease/member.ts';
import type { Replica } from './replica.ts';
import type { World } from './world.ts';

/** How late its timer may be. */
const TOLD_WITHIN_MS = 200;

export class Violation extends Error {
  constructor(message: string, world: World) {
    super(`${message}\n  at ${world.timeline.now.toFixed(1)} ms; what came before:\n${world.trace}`);
    this.name = 'Violation';
  }
}

/** Looks at the whole world after every step. */
export function watchOver(world: World): void {
  world.timeline.onStep = () => {
    checkLeaders(world);
    checkMembers(world);
    if (world.server.unguarded.length > 0) {
      throw new Violation(`written without compare-and-swap: ${world.server.unguarded.join()}`, world);
    }
    if (world.server.uncounted.length > 0) {
      throw new Violation(`renewals that do not count: ${world.server.uncounted.join()}`, world);
    }
  };
}

/** A process that is stopped counts with what it would say if it went on this moment. */
function checkLeaders(world: World): void {
  for (const nodeName of world.bases.keys()) {
    let leader: string | undefined;
    for (const replica of world.processes) {
      if (!replica.isHeld(nodeName)) continue;
      if (leader !== undefined) throw new Violation(`${nodeName} is led by ${leader} and by ${replica.nonce}`, world);
      leader = replica.nonce;
      const holder = world.server.holderOf(nodeName);
      if (holder !== replica.clientId && !world.server.dropped.has(nodeName)) {
        throw new Violation(`${nodeName} is led by ${leader}, but its lease says ${holder ?? 'nothing'}`, world);
      }
    }
  }
}

function checkMembers(world: World): void {
  const valid = new Map<string, string>();
  for (const replica of world.processes) {
    if (!replica.isLive) continue;
    const { clientId, nonce, membership } = replica;
    if (!membership.isValid()) {
      checkFence(replica, world);
      continue;
    }
    replica.invalidSince = undefined;
    const other = valid.get(clientId);
    if (other !== undefined) throw new Violation(`${other} and ${nonce} are both ${clientId}`, world);
    valid.set(clientId, nonce);
  }
}

/** Who is fenced knows it soon: what is under way at bases is given up. */
function checkFence(replica: Replica, world: World): void {
  const { nonce, told, host, hiddenAt } = replica;
  replica.invalidSince ??= world.timeline.now;
  // Timers do not count a suspend, and a hidden Lease ends no term: the next renewal, or the end of the term, notices.
  const spared = Math.max(host.suspendedUntil, hiddenAt) + 2 * FENCE_AFTER_MS;
  const since = Math.max(replica.invalidSince, host.resumedAt, spared);
  if (host.isStopped || told.size === 0 || world.timeline.now - since < TOLD_WITHIN_MS) return;
  throw new Violation(`${nonce} is fenced, and was not told to stop leading ${[...told].join()}`, world);
}

/** What must hold when nothing has gone wrong for a while. */
export function checkAtRest(world: World): void {
  for (const nodeName of world.wantedNames()) {
    const leaders = world.leadersOf(nodeName);
    if (leaders.length !== 1) {
      const holder = world.server.holderOf(nodeName);
      throw new Violation(`${nodeName} has ${leaders.length} leaders; its lease says ${holder ?? 'nothing'}`, world);
    }
  }
  for (const replica of world.live()) {
    const held = replica.leases.heldNames().sort().join();
    const told = [...replica.told].sort().join();
    if (held !== told) throw new Violation(`${replica.nonce} holds ${held} and was told ${told}`, world);
  }
  for (const [nodeName, { isHeard }] of world.bases) {
    if (!isHeard && world.server.holderOf(nodeName) !== undefined) {
      throw new Violation(`${nodeName} is gone, and its lease is not`, world);
    }
  }
}

/** How many Nodes each live member leads. */
export function sharesOf(world: World): number[] {
  const members = world.live().filter(({ membership }) => membership.isValid());
  return members.map(({ leases }) => leases.heldNames().length);
}

export function checkBalance(world: World): void {
  const shares = sharesOf(world);
  const fairShare = world.wantedNames().length / shares.length;
  const tolerated = Math.max(2, fairShare * 0.05 + 1);
  if (Math.max(...shares) - Math.min(...shares) > tolerated) {
    throw new Violation(`shares are ${shares.join()}`, world);
  }
}
