import fc from 'fast-check';
import { type Forgery, forge, forgeries, takeLabelsOff } from './hostile.ts';
import { type Breakage, NO_NOISE, type Noise } from './link.ts';
import { TUNNELS } from './replica.ts';
import type { World } from './world.ts';

/** Something that goes wrong, or merely happens. Plain data, so that a failure can be read and made smaller. */
export type Fault =
  | { readonly kind: 'Stop'; readonly replica: number; readonly ms: number; readonly isSuspended: boolean }
  | { readonly kind: 'Kill' | 'End'; readonly replica: number; readonly restartMs: number | undefined }
  | { readonly kind: 'Double'; readonly replica: number }
  | { readonly kind: 'Cut'; readonly replica: number; readonly breakage: Breakage; readonly ms: number }
  | { readonly kind: 'Outage'; readonly how: Breakage | 'Freezes'; readonly ms: number }
  | { readonly kind: 'Noise'; readonly replica: number; readonly noise: Noise; readonly ms: number }
  | { readonly kind: 'Lag'; readonly replica: number; readonly lagMs: number; readonly ms: number }
  | { readonly kind: 'Hang'; readonly replica: number; readonly ms: number }
  | { readonly kind: 'CutWatch'; readonly replica: number; readonly mustList: boolean }
  | { readonly kind: 'Tunnel'; readonly replica: number; readonly tunnel: number; readonly ms: number }
  | { readonly kind: 'Appear'; readonly count: number }
  | { readonly kind: 'Vanish'; readonly base: number; readonly againMs: number | undefined }
  | { readonly kind: 'Drop'; readonly base: number }
  | { readonly kind: 'WallClock'; readonly replica: number; readonly ms: number }
  | { readonly kind: 'Unlabel'; readonly base: number; readonly isMember: boolean }
  | { readonly kind: 'Hostile'; readonly forgery: Forgery };

export interface Happening {
  readonly afterMs: number;
  readonly fault: Fault;
}

const replica = fc.nat({ max: 3 });
const breakage = fc.constantFrom<Breakage>('Refuses', 'Drops');
/** Around the times that matter: 1 s, 4 s, 5 s, 10 s, 40 s. */
const ms = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 300, max: 8_000 }),
  fc.integer({ min: 3_500, max: 5_500 }),
  fc.integer({ min: 8_000, max: 60_000 }),
);
/** Mostly before the last one is over. */
const gapMs = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
  { weight: 3, arbitrary: fc.integer({ min: 1_500, max: 7_000 }) },
  fc.integer({ min: 7_000, max: 40_000 }),
);
const restartMs = fc.option(fc.integer({ min: 0, max: 12_000 }), { nil: undefined });
const probability = fc.constantFrom(0, 0, 0.05, 0.2, 0.5);
const noise = fc.record({
  lost: probability,
  unanswered: probability,
  late: probability,
  cut: probability,
  refused: probability,
});

/**
 * Without 'Drop': a Lease that somebody deletes by hand while its leader's watch lags can be made by a replica that has
 * just started and never saw it (docs/limits.md). `simulation-found.test.ts` has deletions that all replicas see.
 */
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('Stop' as const), replica, ms, isSuspended: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('Kill' as const, 'End' as const), replica, restartMs }) },
  fc.record({ kind: fc.constant('Double' as const), replica }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('Cut' as const), replica, breakage, ms }) },
  fc.record({ kind: fc.constant('Outage' as const), how: fc.constantFrom('Refuses', 'Drops', 'Freezes'), ms }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('Noise' as const), replica, noise, ms }) },
  fc.record({ kind: fc.constant('Lag' as const), replica, lagMs: fc.integer({ min: 10, max: 8_000 }), ms }),
  fc.record({ kind: fc.constant('Hang' as const), replica, ms }),
  fc.record({ kind: fc.constant('CutWatch' as const), replica, mustList: fc.boolean() }),
  fc.record({
    kind: fc.constant('Tunnel' as const),
    replica,
    tunnel: fc.nat({ max: 1 }),
    ms: fc.integer({ min: 9_000, max: 30_000 }),
  }),
  fc.record({ kind: fc.constant('Appear' as const), count: fc.integer({ min: 1, max: 4 }) }),
  fc.record({
    kind: fc.constant('Vanish' as const),
    base: fc.nat({ max: 7 }),
    againMs: fc.option(ms, { nil: undefined }),
  }),
  fc.record({ kind: fc.constant('Unlabel' as const), base: fc.nat({ max: 7 }), isMember: fc.boolean() }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('Hostile' as const), forgery: forgeries }) },
  fc.record({
    kind: fc.constant('WallClock' as const),
    replica,
    ms: fc.oneof(fc.integer({ min: -20_000, max: 20_000 }), fc.constantFrom(-3_600_000, 3_600_000)),
  }),
);

export const happenings: fc.Arbitrary<Happening[]> = fc.array(fc.record({ afterMs: gapMs, fault }), {
  maxLength: 16,
  size: 'max',
});

/** Makes it happen, and has it end by itself where it is of some length. */
export function inflict(world: World, fault: Fault): void {
  world.note(JSON.stringify(fault));
  if ('replica' in fault) inflictOne(world, fault);
  else inflictAll(world, fault);
}

type OfOne = Extract<Fault, { replica: number }>;
type OfAll = Exclude<Fault, OfOne>;

function inflictOne(world: World, fault: OfOne): void {
  const index = fault.replica % world.replicas.length;
  const hit = world.replicas[index];
  if (hit === undefined) return;
  const { host, link, watch } = hit;
  const later = (ms: number, act: () => void): void => world.timeline.after(ms, act);
  switch (fault.kind) {
    case 'Stop':
      host.stop(fault.isSuspended);
      later(fault.ms, () => host.resume());
      break;
    case 'Kill':
      host.kill();
      again(world, index, fault.restartMs);
      break;
    case 'End':
      hit.end();
      again(world, index, fault.restartMs);
      break;
    case 'Double':
      world.start(index);
      break;
    case 'Cut':
      cut(world, hit, fault.breakage, fault.ms);
      break;
    case 'Noise':
      link.noise = fault.noise;
      later(fault.ms, () => {
        link.noise = NO_NOISE;
      });
      break;
    case 'Lag':
      watch.lagMs = fault.lagMs;
      later(fault.ms, () => {
        watch.lagMs = 0;
      });
      break;
    case 'Hang':
      watch.hang();
      later(fault.ms, () => watch.unhang());
      break;
    case 'CutWatch':
      watch.mustList ||= fault.mustList;
      watch.cut();
      break;
    case 'Tunnel': {
      const tunnel = TUNNELS[fault.tunnel] ?? 'http';
      hit.setTunnel(tunnel, false);
      later(fault.ms, () => hit.setTunnel(tunnel, true));
      break;
    }
    case 'WallClock':
      host.stepWallClock(fault.ms);
      break;
  }
}

function again(world: World, index: number, ms: number | undefined): void {
  if (ms === undefined) return;
  const before = world.replicas[index];
  world.timeline.after(ms, () => {
    if (world.replicas[index] === before) world.start(index);
  });
}

function cut(world: World, { link, watch }: World['replicas'][number], breakage: Breakage, ms: number): void {
  link.breakage = breakage;
  if (breakage === 'Refuses') watch.cut();
  else watch.hang();
  world.timeline.after(ms, () => {
    link.breakage = undefined;
    watch.unhang();
  });
}

function inflictAll(world: World, fault: OfAll): void {
  switch (fault.kind) {
    case 'Outage':
      outage(world, fault.how, fault.ms);
      break;
    case 'Appear':
      world.appear(fault.count);
      break;
    case 'Drop':
      world.server.drop(`kube-node-lease/${baseOf(world, fault.base)}`);
      break;
    case 'Unlabel':
      takeLabelsOff(world, fault);
      break;
    case 'Hostile':
      forge(world, fault.forgery);
      break;
    case 'Vanish': {
      const name = baseOf(world, fault.base);
      world.vanish(name);
      if (fault.againMs !== undefined) world.timeline.after(fault.againMs, () => world.reappear(name));
      break;
    }
  }
}

function baseOf(world: World, index: number): string {
  const names = [...world.bases.keys()];
  return names[index % names.length] ?? '';
}

/** The API server is away for all, and its state is kept. */
export function outage(world: World, how: Breakage | 'Freezes', ms: number): void {
  const { machine, timeline } = world;
  if (how === 'Freezes') {
    machine.freeze();
    timeline.after(ms, () => machine.thaw());
    return;
  }
  machine.breakage = how;
  for (const { watch } of world.processes) {
    if (how === 'Refuses') watch.cut();
    else watch.hang();
  }
  timeline.after(ms, () => {
    machine.breakage = undefined;
    for (const { watch } of world.processes) watch.unhang();
  });
}

/** Nothing is wrong any more. Who is dead stays dead, but one replica lives. */
export function heal(world: World): void {
  world.note('all is well again');
  world.machine.breakage = undefined;
  world.machine.thaw();
  for (const process of world.processes) {
    process.link.breakage = undefined;
    process.link.noise = NO_NOISE;
    process.watch.lagMs = 0;
    process.watch.unhang();
    process.host.resume();
    for (const tunnel of TUNNELS) process.setTunnel(tunnel, true);
  }
  if (!world.processes.some(({ isLive, isEnding }) => isLive && !isEnding)) world.start(0);
}
