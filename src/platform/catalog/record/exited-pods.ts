import { isDeepStrictEqual } from 'node:util';
import type { JsonPatchOperation } from '../../../kube/resource.ts';
import { type CatalogPod, livePodOf } from '../catalog-pod.ts';
import { type ExitedPod, type LivePod, MAX_LIVE, type RecordedPods } from './exited-record.ts';

export interface RecordInput {
  /** Undefined: there is no record, or nothing was written into it yet. */
  readonly before: RecordedPods | undefined;
  /** The Pods of the Module that the cache has. */
  readonly pods: readonly CatalogPod[];
  /** Pods that have gone, the newest last. Those that the record has already do no harm. */
  readonly exits: readonly ExitedPod[];
  /** Maximum number of entries. */
  readonly limit: number;
}

/** What becomes of a record. */
export interface RecordChange {
  /** New entries, the newest first. */
  readonly added: readonly ExitedPod[];
  /** Number of its entries that stay. */
  readonly kept: number;
  readonly exited: number;
  readonly live: readonly LivePod[];
}

/** Decides what becomes of a record. Pods that live are in no new entry, and each UID is there once. */
export function recordChange({ before, pods, exits, limit }: RecordInput): RecordChange {
  const known = new Set(before?.uids);
  const alive = new Set(pods.map(({ uid }) => uid));
  const entries: ExitedPod[] = [];
  for (const exit of exits) {
    if (known.has(exit.uid) || alive.has(exit.uid)) continue;
    known.add(exit.uid);
    entries.unshift(exit);
  }
  const added = entries.slice(0, limit);
  const live = pods.filter(({ uid }) => !known.has(uid)).sort(byNewest);
  return {
    added,
    kept: Math.min(before?.uids.length ?? 0, limit - added.length),
    exited: (before?.exited ?? 0) + entries.length,
    live: live.slice(0, MAX_LIVE).map(livePodOf),
  };
}

/** Pods that lived when the record was written, and that nothing is known of now. The oldest is first. */
export function missingPods({ before, pods, exits }: Omit<RecordInput, 'limit'>): LivePod[] {
  const known = new Set([...[...pods, ...exits].map(({ uid }) => uid), ...(before?.uids ?? [])]);
  return (before?.live ?? []).filter(({ uid }) => !known.has(uid)).sort((a, b) => byNewest(b, a));
}

/** How soon a change has to be written: when Pods have gone, when only those that live have changed, or never. */
export type Urgency = 'Exits' | 'Live' | 'None';

export function urgencyOf(before: RecordedPods | undefined, { added, kept, live }: RecordChange): Urgency {
  if (added.length > 0 || kept < (before?.uids.length ?? 0)) return 'Exits';
  return isDeepStrictEqual(before?.live ?? [], live) ? 'None' : 'Live';
}

/** The patch that makes a change to that version of a record. Entries that stay are not sent again. */
export function patchOf(
  { resourceVersion, recorded }: { readonly resourceVersion: string; readonly recorded: RecordedPods | undefined },
  { added, kept, exited, live }: RecordChange,
): JsonPatchOperation[] {
  const version = { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion } as const;
  if (recorded === undefined) return [version, { op: 'add', path: '/status', value: { exited, pods: added, live } }];
  const oldest = recorded.uids.length - 1;
  const removed = Array.from({ length: recorded.uids.length - kept }, (_, index) => oldest - index);
  return [
    version,
    ...removed.map((index) => ({ op: 'remove', path: `/status/pods/${index}` }) as const),
    ...added.map((pod, index) => ({ op: 'add', path: `/status/pods/${index}`, value: pod }) as const),
    ...(added.length > 0 ? [{ op: 'replace', path: '/status/exited', value: exited } as const] : []),
    ...(isDeepStrictEqual(recorded.live, live) ? [] : [{ op: 'replace', path: '/status/live', value: live } as const]),
  ];
}

type Aged = Pick<LivePod, 'uid' | 'createTime'>;

/** The same order for whoever decides, so that nothing is written for an order. */
function byNewest(a: Aged, b: Aged): number {
  if (a.createTime !== b.createTime) return a.createTime < b.createTime ? 1 : -1;
  return a.uid < b.uid ? -1 : 1;
}
