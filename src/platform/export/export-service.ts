import Type, { type Static } from 'typebox';
import { crdOf } from '../../kinds/crd.ts';
import { enumOf, time } from '../../kinds/schema.ts';
import { controllerOf, type KubeObject, type OwnerReference } from '../../kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import { PLATFORM_GROUP } from '../../labels.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';
import { BALANCES, PROTOCOLS } from './exported-service.ts';

/** One source of the type, the CRD and the table in docs/export.md. Names of fields are those of bk-bcs ExportService. */

const backend = Type.Object({
  targetIP: Type.String({ description: 'Address of the base.' }),
  targetPort: Type.Integer({ description: 'Port there.' }),
  label: Type.Array(Type.String(), { description: 'Value of the weight label of its Pod; empty where it has none.' }),
  weight: Type.Integer({ description: '1 or more, relative to the other backends of the port.' }),
});

const port = Type.Object({
  name: Type.String({ description: 'Name of the port of the Service, or its number.' }),
  BCSVHost: Type.String({ description: "Host name; '' for `tcp` and `udp`." }),
  path: Type.String({ description: "Prefix of paths; '' for `tcp` and `udp`." }),
  protocol: enumOf(PROTOCOLS, { description: '`http`, `https`, `tcp` or `udp`.' }),
  servicePort: Type.Integer({ description: 'Where a balancer listens.' }),
  backends: Type.Array(backend, { description: 'Sorted by address and port.' }),
});

/** What balancers get. */
const exported = Type.Object({
  cluster: Type.String({ description: '`EXPORT_CLUSTER`.' }),
  namespace: Type.String({ description: 'Of the Service.' }),
  serviceName: Type.String({ description: 'Its name.' }),
  serviceWeight: Type.Unsafe<Record<string, number>>({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Shares by the value of the weight label.',
  }),
  ports: Type.Array(port, { description: 'Sorted by name.' }),
  BCSGroup: Type.Array(Type.String(), { description: 'Groups of balancers.' }),
  sslcert: Type.Boolean({ description: 'Annotation `ssl`.' }),
  balance: enumOf(BALANCES, { description: '`roundrobin`, `source` or `leastconn`.' }),
  maxconn: Type.Integer({ description: 'Annotation `max-conn`.' }),
});

const condition = Type.Object({
  type: enumOf(['Ready', 'Conflict', 'Invalid', 'UnknownWeight', 'WeightsRounded']),
  status: enumOf(['True', 'False']),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionTime: time(),
});

const status = Type.Object({
  ...exported.properties,
  observedGeneration: Type.Integer(),
  leftOutOf: Type.Array(Type.String(), { description: 'Groups that do not take it: `Conflict` says why.' }),
  guestAt: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Its hosts that `exportSharedHosts` of another namespace lets it have: it loses them with that.',
    }),
  ),
  summary: Type.Object(
    { groups: Type.String(), ports: Type.String(), backends: Type.Integer() },
    { description: 'As `kubectl get` shows it.' },
  ),
  conditions: Type.Array(condition, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
});

const spec = Type.Object({
  serviceRef: Type.Object({ name: Type.String() }, { description: 'The Service, in the same namespace.' }),
});

export type Backend = Static<typeof backend>;
export type Exported = Static<typeof exported>;
export type ExportServiceStatus = Static<typeof status>;
export type ExportServiceCondition = Static<typeof condition>;
export type ExportConditionType = ExportServiceCondition['type'];

export const EXPORT_SERVICE_SCHEMAS = { spec, status };

export interface ExportServiceObject extends KubeObject {
  readonly spec?: Static<typeof spec>;
  readonly status?: ExportServiceStatus;
}

export const EXPORT_SERVICES: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'ExportService',
  plural: 'exportservices',
  isNamespaced: true,
};

export const EXPORT_SERVICE_CRD = crdOf({
  kind: EXPORT_SERVICES,
  shortNames: ['es'],
  description: 'A Service as load balancers outside of the cluster take it. Made by the controller.',
  schemaRevision: 4,
  spec,
  status,
  columns: [
    { name: 'Group', type: 'string', jsonPath: '.status.summary.groups' },
    { name: 'Balance', type: 'string', jsonPath: '.status.balance' },
    { name: 'Ports', type: 'string', jsonPath: '.status.summary.ports' },
    { name: 'Backends', type: 'integer', jsonPath: '.status.summary.backends' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', priority: 1, jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  ],
});

/** An ExportService as the informer keeps it. */
export interface CachedExportService extends CachedObject {
  readonly generation: number;
  readonly isDeleting: boolean;
  /** The Service that it names. */
  readonly serviceName: string | undefined;
  readonly controller: OwnerReference | undefined;
  readonly status: ExportServiceStatus | undefined;
}

export const CACHED_EXPORT_SERVICES: WatchedKind<CachedExportService> = {
  kind: EXPORT_SERVICES.kind,
  path: collectionPathOf(EXPORT_SERVICES),
  project: projectExportService,
};

export function projectExportService(object: KubeObject): CachedExportService {
  const { metadata, spec, status } = object as ExportServiceObject;
  return {
    ...metaOf(object),
    generation: metadata.generation ?? 0,
    isDeleting: metadata.deletionTimestamp !== undefined,
    serviceName: spec?.serviceRef?.name,
    controller: controllerOf(metadata),
    status,
  };
}
