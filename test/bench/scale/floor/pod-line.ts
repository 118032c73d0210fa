import type { PodObject } from '../../../../src/kube/objects.ts';
import { identityOf } from '../../../../src/labels.ts';
import { containerModulesOf } from '../../../../src/pod/module-spec.ts';
import { projectPod } from '../../../../src/pod/vpod.ts';
import { installBizOf } from '../../../../tunnels/arklet/convert.ts';
import type { FloorModule, FloorPod } from './pod-table.ts';

/** A Pod as the API server tells of it. */
export interface PodEvent {
  readonly uid: string;
  readonly isDeleting: boolean;
  /** The whole Pod, read only where it is new; see `podOf`. undefined: the Pod is gone. */
  readonly read: (() => FloorPod | undefined) | undefined;
}

const TYPE_AT = '{"type":"'.length;
const LETTER = { added: 0x41, modified: 0x4d, deleted: 0x44 };
const QUOTE = 0x22;
const UID = Buffer.from('"uid":"');
/** Inside of an annotation its quotes would be escaped. */
const DELETION = Buffer.from('"deletionTimestamp":"');

/**
 * What a line of the watch tells; undefined for an ERROR. Most lines are the echo of an own write, and of those no
 * more is needed than can be seen without parsing: the API server writes fields in the order of the Go struct, so the
 * first UID is the Pod's own, before those of owners.
 */
export function eventOf(line: Buffer): PodEvent | undefined {
  const letter = line[TYPE_AT];
  const isGone = letter === LETTER.deleted;
  if (!isGone && letter !== LETTER.added && letter !== LETTER.modified) return undefined;
  const start = line.indexOf(UID) + UID.length;
  const uid = line.toString('latin1', start, line.indexOf(QUOTE, start));
  if (isGone) return { uid, isDeleting: true, read: undefined };
  return { uid, isDeleting: line.includes(DELETION), read: () => podOf(JSON.parse(line.toString()).object) };
}

export function eventOfListed(item: PodObject): PodEvent {
  const { uid = '', deletionTimestamp } = item.metadata;
  return { uid, isDeleting: deletionTimestamp !== undefined, read: () => podOf(item) };
}

/** undefined where it is on no Node of ours, or not every container is a module. */
function podOf(object: PodObject): FloorPod | undefined {
  const pod = projectPod(object);
  const identity = identityOf(pod.nodeName ?? '');
  if (identity === undefined) return undefined;
  const modules: FloorModule[] = [];
  for (const entry of containerModulesOf(pod)) {
    if (entry.kind !== 'module') return undefined;
    const { name, version } = entry.spec;
    modules.push({ name, version, payload: JSON.stringify(installBizOf(entry.spec)) });
  }
  const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}`;
  return { uid: pod.uid, identity, path, modules, isDeleting: pod.isDeleting };
}
