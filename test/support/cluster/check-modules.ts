import { nodeNameOf } from '../../../src/labels.ts';
import type { ClusterFacts, OperationFact, PodFact } from './facts.ts';
import type { CheckOptions, Violation } from './violation.ts';

/** What a Pod wants within so long before or after an uninstall may not have been known, or no longer hold. */
const RACE_MS = 1_000;

const isInstall = ({ command }: OperationFact): boolean => command === 'installBiz' || command === 'batchInstallBiz';
const keyOf = (base: string, module: string): string => `${base} ${module}`;

/** No install of what is there or on its way, and none more than there were Pods (and restarts) to ask for it. */
export function executedTwice(facts: ClusterFacts, { since = 0, allowedLate = {} }: CheckOptions = {}): Violation[] {
  const installs = facts.operations.filter(isInstall);
  let budget = Object.values(allowedLate).reduce((sum, count) => sum + count, 0);
  const again = installs.flatMap(({ base, module, stateAtReceipt, outcome, at }): Violation[] => {
    if (at < since || (stateAtReceipt !== 'ACTIVATED' && stateAtReceipt !== 'RESOLVED')) return [];
    // The base refuses what it has; one that was in flight when its sender stopped does no harm.
    if (outcome !== 'executed' && budget-- > 0) return [];
    return [
      { kind: 'executed twice', at, base, text: `install of ${module}, which was ${stateAtReceipt}: ${outcome}` },
    ];
  });
  return [...again, ...tooOften(facts, installs, since)];
}

function tooOften(facts: ClusterFacts, installs: readonly OperationFact[], since: number): Violation[] {
  const askers = askersByModule(facts.pods);
  const executed = installs.filter(({ outcome }) => outcome === 'executed');
  const byModule = Map.groupBy(executed, ({ base, module }) => keyOf(base, module));
  return [...byModule].flatMap(([key, all]): Violation[] => {
    const last = all.at(-1);
    if (!last || last.at < since) return [];
    const restarts = facts.restarts.filter(({ base, at }) => base === last.base && at <= last.at).length;
    const pods = askers.get(key)?.size ?? 0;
    if (all.length <= pods + restarts) return [];
    const text = `${last.module} was installed ${all.length} times for ${pods} Pods and ${restarts} restarts`;
    return [{ kind: 'executed twice', at: last.at, base: last.base, text }];
  });
}

/** UIDs of the Pods that ever asked for a module, by base and module. */
function askersByModule(pods: readonly PodFact[]): Map<string, Set<string>> {
  const askers = new Map<string, Set<string>>();
  for (const { nodeName, modules, uid } of pods) {
    for (const module of modules) {
      const key = keyOf(nodeName.slice(nodeNameOf('').length), module);
      const uids = askers.get(key) ?? new Set();
      askers.set(key, uids.add(uid));
    }
  }
  return askers;
}

/** No uninstall of what a Pod on that Node wanted, before it and after it. */
export function uninstalledThoughWanted(facts: ClusterFacts, { since = 0 }: CheckOptions = {}): Violation[] {
  const lives = [...Map.groupBy(facts.pods, ({ uid }) => uid).values()].flatMap(lifeOf);
  const byNode = Map.groupBy(lives, ({ nodeName }) => nodeName);
  const uninstalls = facts.operations.filter(({ command, at }) => command === 'uninstallBiz' && at >= since);
  return uninstalls.flatMap(({ base, module, at, outcome }): Violation[] => {
    const wanter = byNode
      .get(nodeNameOf(base))
      ?.find(({ modules, from, to }) => modules.includes(module) && from <= at - RACE_MS && to >= at + RACE_MS);
    if (!wanter) return [];
    const text = `${module}, which Pod ${wanter.name} wants: ${outcome}`;
    return [{ kind: 'uninstalled though wanted', at, base, text }];
  });
}

interface PodLife {
  readonly name: string;
  readonly nodeName: string;
  readonly modules: readonly string[];
  /** Bound. */
  readonly from: number;
  /** Deleted, over or gone; Infinity: not yet. */
  readonly to: number;
}

function lifeOf(versions: readonly PodFact[]): PodLife[] {
  const bound = versions.find(({ nodeName }) => nodeName !== '');
  if (!bound) return [];
  const end = versions.find(({ deletedAt, isOver, isGone }) => deletedAt !== undefined || isOver || isGone);
  const to = end ? Math.min(end.at, end.deletedAt ?? end.at) : Number.POSITIVE_INFINITY;
  return [{ name: bound.name, nodeName: bound.nodeName, modules: bound.modules, from: bound.at, to }];
}
