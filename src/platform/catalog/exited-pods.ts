import { isDeepStrictEqual } from 'node:util';
import { type CatalogPod, livePodOf } from './catalog-pod.ts';
import { type ExitedPod, type ExitedRecordStatus, type LivePod, MAX_LIVE } from './exited-record.ts';

export interface RecordInput {
  /** Undefined: there is no record, or nothing was written into it yet. */
  readonly before: ExitedRecordStatus | undefined;
  /** The Pods of the Module that the cache has. */
  readonly pods: readonly CatalogPod[];
  /** Pods that have gone, the newest last. Those that the record has already do no harm. */
  readonly exits: readonly ExitedPod[];
  /** Maximum number of entries. */
  readonly limit: number;
}

/** The status of a record. Pods that live are in no entry, and each UID is there once. */
export function exitedRecordStatus({ before, pods, exits, limit }: RecordInput): ExitedRecordStatus {
  const known = new Set(before?.pods.map(({ uid }) => uid));
  const alive = new Set(pods.map(({ uid }) => uid));
  const entries: ExitedPod[] = [];
  for (const exit of exits) {
    if (known.has(exit.uid) || alive.has(exit.uid)) continue;
    known.add(exit.uid);
    entries.unshift(exit);
  }
  const live = pods.filter(({ uid }) => !known.has(uid)).sort(byNewest);
  return {
    exited: (before?.exited ?? 0) + entries.length,
    pods: [...entries, ...(before?.pods ?? [])].slice(0, limit),
    live: live.slice(0, MAX_LIVE).map(livePodOf),
  };
}

/** Pods that lived when the record was written, and that nothing is known of now. The oldest is first. */
export function missingPods({ before, pods, exits }: Omit<RecordInput, 'limit'>): LivePod[] {
  const known = new Set([...pods, ...exits, ...(before?.pods ?? [])].map(({ uid }) => uid));
  return (before?.live ?? []).filter(({ uid }) => !known.has(uid)).sort((a, b) => byNewest(b, a));
}

/** How soon a status has to be written: when Pods have gone, when only those that live have changed, or never. */
export function urgencyOf(before: ExitedRecordStatus | undefined, next: ExitedRecordStatus): 'Exits' | 'Live' | 'None' {
  if (before === undefined) {
    if (next.pods.length > 0) return 'Exits';
    return next.live.length > 0 ? 'Live' : 'None';
  }
  if (before.exited !== next.exited || before.pods.length !== next.pods.length) return 'Exits';
  return isDeepStrictEqual(before.live, next.live) ? 'None' : 'Live';
}

type Aged = Pick<LivePod, 'uid' | 'createTime'>;

/** The same order for whoever decides, so that nothing is written for an order. */
function byNewest(a: Aged, b: Aged): number {
  if (a.createTime !== b.createTime) return a.createTime < b.createTime ? 1 : -1;
  return a.uid < b.uid ? -1 : 1;
}
