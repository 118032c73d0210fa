import Type, { type Static } from 'typebox';
import { crdOf } from '../../../kinds/crd.ts';
import { time } from '../../../kinds/schema.ts';
import { controllerOf, type KubeObject, type OwnerReference } from '../../../kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../../kube/watch/informer-types.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import type { WatchedKind } from '../../../reconcile/informers.ts';
import { RECORD_LIMIT } from '../platform-config/platform-config.ts';

/** One source of the type, the CRD and the table in docs/kinds.md. Names of fields are those of TExitedRecord. */

/** Bound for the size of the object: the newest Pods that live. */
export const MAX_LIVE = 250;

const pod = {
  uid: Type.String(),
  name: Type.String(),
  id: Type.Optional(Type.String({ description: 'Id of the release that it was made for.' })),
  node: Type.Optional(
    Type.String({ description: 'Node of its base, `vnode.{identity}`. Not set: it was never on a base.' }),
  ),
  nodeIP: Type.Optional(Type.String({ description: 'Address of the base.' })),
  podIP: Type.Optional(
    Type.String({ description: 'Address at which it was reached; that of the base, where Services can use it.' }),
  ),
  createTime: time({ description: 'When it was created.' }),
};

const exited = Type.Object({
  ...pod,
  deleteTime: time({ description: 'When it had gone.' }),
  foundMissing: Type.Optional(
    Type.Boolean({
      description: 'It went while no controller ran. `deleteTime` is when that was found.',
    }),
  ),
  reason: Type.Optional(
    Type.String({
      description:
        'Why it failed, or why it had to go, in one word. Not set: it ran until somebody deleted it, or nobody knows.',
    }),
  ),
  message: Type.Optional(Type.String({ description: 'The same in words; 1 KiB at most.' })),
});

const live = Type.Object(pod);

const byUid = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['uid'] };

const spec = Type.Object({
  app: Type.String({ description: 'That of the Module.' }),
  module: Type.String({ description: 'That of the Module.' }),
});

const status = Type.Object({
  exited: Type.Integer({ description: 'Number of Pods that were found gone since there is this record.' }),
  pods: Type.Array(exited, {
    maxItems: RECORD_LIMIT.max,
    ...byUid,
    description: `Pods that have gone, the newest first; at most \`recordLimit.exitedPod\` of the PlatformConfig, ${RECORD_LIMIT.default} by default.`,
  }),
  live: Type.Array(live, {
    maxItems: MAX_LIVE,
    ...byUid,
    description: `Pods that live, up to 10 s late; the newest ${MAX_LIVE}. Those that go while no controller runs are found by it.`,
  }),
});

export type ExitedPod = Static<typeof exited>;
export type LivePod = Static<typeof live>;
export type ExitedRecordStatus = Static<typeof status>;

export interface ExitedRecordObject extends KubeObject {
  readonly spec: Static<typeof spec>;
  readonly status?: ExitedRecordStatus;
}

export const EXITED_RECORDS: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'ModuleExitedRecord',
  plural: 'moduleexitedrecords',
  isNamespaced: true,
};

export const EXITED_RECORD_CRD = crdOf({
  kind: EXITED_RECORDS,
  shortNames: ['mer'],
  description: 'Where Pods of the Module with its name ran that have gone, and why they went. Made by the controller.',
  schemaRevision: 2,
  spec,
  status,
  columns: [
    { name: 'Exited', type: 'integer', jsonPath: '.status.exited' },
    { name: 'Last-Pod', type: 'string', jsonPath: '.status.pods[0].name' },
    { name: 'Release', type: 'string', jsonPath: '.status.pods[0].id' },
    { name: 'Node', type: 'string', jsonPath: '.status.pods[0].node' },
    { name: 'Gone', type: 'date', jsonPath: '.status.pods[0].deleteTime' },
    { name: 'Reason', type: 'string', jsonPath: '.status.pods[0].reason' },
    { name: 'Message', type: 'string', jsonPath: '.status.pods[0].message', priority: 1 },
  ],
});

/** The part of a status that the informer keeps: a quarter of the memory that whole entries take. */
export interface RecordedPods {
  /** UIDs of the entries, the newest first. */
  readonly uids: readonly string[];
  readonly exited: number;
  readonly live: readonly LivePod[];
}

/** The part of a record that the informer keeps. */
export interface CachedExitedRecord extends CachedObject {
  readonly isDeleting: boolean;
  readonly controller: OwnerReference | undefined;
  /** Undefined: nothing was written into it yet. */
  readonly recorded: RecordedPods | undefined;
}

export const CACHED_EXITED_RECORDS: WatchedKind<CachedExitedRecord> = {
  kind: EXITED_RECORDS.kind,
  path: collectionPathOf(EXITED_RECORDS),
  project: projectExitedRecord,
};

export function projectExitedRecord(object: KubeObject): CachedExitedRecord {
  const { metadata, status } = object as ExitedRecordObject;
  return {
    ...metaOf(object),
    isDeleting: metadata.deletionTimestamp !== undefined,
    controller: controllerOf(metadata),
    recorded: status && { uids: status.pods.map(({ uid }) => uid), exited: status.exited, live: status.live },
  };
}
