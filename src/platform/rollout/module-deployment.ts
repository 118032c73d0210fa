import Type, { type Static } from 'typebox';
import { crdOf } from '../../kinds/crd.ts';
import { withoutNulls } from '../../kinds/pod-form.ts';
import { podSchemaOf, type Structural, withFields } from '../../kinds/pod-schema.ts';
import { annotationMap, countOrPercent, enumOf, labelMap, rules, time } from '../../kinds/schema.ts';
import { MODULE_DEPLOYMENTS } from '../../kinds/workload-kinds.ts';
import type { KubeObject, PodObject } from '../../kube/objects.ts';
import { collectionPathOf } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL, REVISION_LABEL } from '../../labels.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';

/** One source of the type, the CRD and the table in docs/module-deployments.md. */

const MAX_REPLICAS = 10_000;
/** Bounds for the API server's estimate of what its checks cost. */
const MAX_LABELS = 32;
const MAX_SELECTOR_LABELS = 16;
const MAX_CONTAINERS = 16;

const nameOfModule = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  description: 'Name of the module.',
});

const container: Structural = {
  ...withFields(podSchemaOf('Container'), {
    name: nameOfModule,
    image: Type.String({ minLength: 1, maxLength: 4096, description: 'Address of its jar.' }),
  }),
  required: ['name', 'image'],
  ...rules({
    rule: "self.image.contains('.jar')",
    message: 'image must be the address of a jar, such as https://jars.example.com/shop-1.0.0-ark-biz.jar',
  }),
};

const podSpec = Type.Unsafe<PodObject['spec']>(
  withFields(podSchemaOf('PodSpec'), {
    containers: {
      type: 'array',
      items: container,
      minItems: 1,
      maxItems: MAX_CONTAINERS,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      description: 'The modules.',
    },
    restartPolicy: enumOf(['Always'], { description: 'Only `Always`, the default, as of a Deployment.' }),
  }),
);

/** A Deployment takes these fields and uses none of them. Some tools write them. */
const ignored = Type.Optional(Type.Unsafe<unknown>({ type: 'string' }));

const template = Type.Object(
  {
    metadata: Type.Object({
      labels: labelMap({ maxProperties: MAX_LABELS, description: 'Must fit the selector.' }),
      annotations: Type.Optional(annotationMap({ description: 'Of the Pods.' })),
      name: ignored,
      generateName: ignored,
      namespace: ignored,
      creationTimestamp: ignored,
    }),
    spec: podSpec,
  },
  {
    description: 'Pod template, as of a Deployment. A change of it starts a rollout.',
    ...rules({
      rule: `'${COMPONENT_LABEL}' in self.metadata.labels && self.metadata.labels['${COMPONENT_LABEL}'] == '${COMPONENT.module}'`,
      message: `template.metadata.labels needs ${COMPONENT_LABEL}: ${COMPONENT.module}, or no base takes the Pods`,
    }),
  },
);

const rollingUpdate = Type.Object(
  {
    maxSurge: Type.Optional(
      countOrPercent({ description: 'How many Pods there may be above `replicas`; default 25 %, rounded up.' }),
    ),
    maxUnavailable: Type.Optional(
      countOrPercent({
        description: 'How many Pods may be missing from `replicas`; default 25 %, rounded down.',
      }),
    ),
    placement: Type.Optional(
      enumOf(['SameBase', 'Any'], {
        description:
          '`SameBase` (default): a new Pod runs on the base of the Pod that it replaces. `Any`: the scheduler chooses.',
      }),
    ),
  },
  rules({
    rule: "!(has(self.maxSurge) && has(self.maxUnavailable) && string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",
    message: 'maxSurge and maxUnavailable cannot both be 0: no Pod could ever be replaced',
  }),
);

const batch = Type.Object({
  count: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: 'Number of batches of equal size; default 1.' }),
  ),
  useBeta: Type.Optional(Type.Boolean({ description: 'The first batch is one Pod. Default false.' })),
  needConfirm: Type.Optional(
    Type.Boolean({
      description: `Wait after each batch until the annotation \`${ANNOTATION.confirmBatch}\` has its number. Default false.`,
    }),
  ),
  intervalSeconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 604_800, description: 'Wait this long after each batch, s; default 0.' }),
  ),
});

/** `progressDeadlineSeconds`, where it is not set. */
export const DEFAULT_DEADLINE_SECONDS = 600;

const STRATEGIES = ['RollingUpdate', 'Recreate', 'OnDelete', 'Batch'] as const;

const spec = Type.Object(
  {
    replicas: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_REPLICAS,
        default: 1,
        description: 'How many Pods there should be; default 1.',
      }),
    ),
    peer: Type.Optional(
      Type.Boolean({
        description: 'One Pod for each base that fits the template: the controller sets `replicas`. Default false.',
      }),
    ),
    selector: Type.Object(
      {
        matchLabels: labelMap({
          minProperties: 1,
          maxProperties: MAX_SELECTOR_LABELS,
          description: 'Labels of its Pods.',
        }),
      },
      {
        description: 'Which Pods are its own.',
        ...rules(
          { rule: 'self == oldSelf', message: 'selector cannot be changed: create another ModuleDeployment' },
          {
            rule: `!('${REVISION_LABEL}' in self.matchLabels)`,
            message: `selector.matchLabels cannot have ${REVISION_LABEL}: the controller sets this label of each Pod`,
          },
        ),
      },
    ),
    template,
    minReadySeconds: Type.Optional(
      Type.Integer({ minimum: 0, description: 'How long a Pod must be Ready to count as available, s; default 0.' }),
    ),
    revisionHistoryLimit: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100, description: 'How many old revisions are kept; default 10.' }),
    ),
    progressDeadlineSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'A rollout that makes no progress for this long stops, s; default 600.',
      }),
    ),
    onFailure: Type.Optional(
      enumOf(['Pause', 'Rollback'], {
        description:
          'What happens at the deadline. `Pause` (default): the rollout stops. `Rollback`: the template of the last rollout that was completed comes back.',
      }),
    ),
    paused: Type.Optional(Type.Boolean({ description: 'Nothing is replaced while this is true. Default false.' })),
    strategy: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(
            enumOf(STRATEGIES, {
              description:
                '`RollingUpdate` (default), `Batch` (rolling, in batches), `Recreate` (all old Pods first), `OnDelete` (you delete them).',
            }),
          ),
          rollingUpdate: Type.Optional(rollingUpdate),
          batch: Type.Optional(batch),
        },
        {
          description: 'How Pods of an older template are replaced.',
          ...rules(
            {
              rule: "!has(self.batch) || (has(self.type) && self.type == 'Batch')",
              message: 'batch has no effect without type: Batch',
            },
            {
              rule: "!has(self.rollingUpdate) || !has(self.type) || self.type in ['RollingUpdate', 'Batch']",
              message: 'rollingUpdate has no effect with type: Recreate and type: OnDelete',
            },
          ),
        },
      ),
    ),
    rollbackTo: Type.Optional(
      Type.Object(
        { revision: Type.Optional(Type.Integer({ minimum: 0, description: '0 (default): the previous one.' })) },
        { description: 'Restores the template of an earlier revision; the controller removes the field then.' },
      ),
    ),
  },
  {
    description: 'What there should be.',
    ...rules(
      {
        rule: 'self.selector.matchLabels.all(key, key in self.template.metadata.labels && self.template.metadata.labels[key] == self.selector.matchLabels[key])',
        message: 'template.metadata.labels must have all labels of selector.matchLabels',
      },
      {
        rule: `(has(self.progressDeadlineSeconds) ? self.progressDeadlineSeconds : ${DEFAULT_DEADLINE_SECONDS}) > (has(self.minReadySeconds) ? self.minReadySeconds : 0)`,
        message: `progressDeadlineSeconds (default ${DEFAULT_DEADLINE_SECONDS}) must be greater than minReadySeconds: every rollout would fail`,
      },
    ),
  },
);

const condition = Type.Object({
  type: Type.String({
    description: '`Available`, `Progressing`, `ReplicaFailure`, `Ready`, `Reconciling` or `Stalled`.',
  }),
  status: enumOf(['True', 'False', 'Unknown']),
  reason: Type.String(),
  message: Type.String(),
  lastUpdateTime: time({ description: 'Of `Progressing`: the last progress.' }),
  lastTransitionTime: time(),
});

const status = Type.Object({
  observedGeneration: Type.Optional(Type.Integer()),
  replicas: Type.Integer({ description: 'Pods that there are.' }),
  updatedReplicas: Type.Integer({ description: 'Pods of the newest template.' }),
  readyReplicas: Type.Integer(),
  availableReplicas: Type.Integer(),
  unavailableReplicas: Type.Integer({ description: 'Pods that are missing from `replicas`, or not available.' }),
  updatedReadyReplicas: Type.Optional(Type.Integer({ description: 'Ready Pods of the newest template.' })),
  updatedAvailableReplicas: Type.Optional(Type.Integer({ description: 'Available Pods of the newest template.' })),
  currentRevision: Type.Optional(Type.String({ description: 'Hash of the last template that was rolled out whole.' })),
  updateRevision: Type.Optional(Type.String({ description: 'Hash of the newest template.' })),
  revision: Type.Optional(Type.Integer({ description: 'Number of the newest template.' })),
  collisionCount: Type.Optional(Type.Integer()),
  selector: Type.String({ description: 'For the scale subresource.' }),
  batch: Type.Optional(
    Type.Object(
      {
        current: Type.Integer({ description: 'From 1.' }),
        total: Type.Integer(),
        completed: Type.Integer(),
        waitingConfirm: Type.Boolean(),
        completedTime: Type.Optional(time({ description: 'When the last batch was complete.' })),
      },
      { description: 'While a rollout in batches runs.' },
    ),
  ),
  conditions: Type.Array(condition, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
});

export type ModuleDeploymentSpec = Static<typeof spec>;
export type ModuleDeploymentStatus = Static<typeof status>;
export type ModuleDeploymentCondition = Static<typeof condition>;
export type ModuleTemplate = Static<typeof template>;

export interface ModuleDeploymentObject extends KubeObject {
  readonly spec: ModuleDeploymentSpec;
  readonly status?: ModuleDeploymentStatus;
}

export const MODULE_DEPLOYMENT_SCHEMAS = { spec, status };

/** Its Pods have this name and 17 characters more, and its name is a value of labels elsewhere. */
const MAX_NAME_LENGTH = 63;

export const MODULE_DEPLOYMENT_CRD = crdOf({
  kind: MODULE_DEPLOYMENTS,
  shortNames: ['md'],
  categories: ['all'],
  description: 'Keeps Pods of modules, and replaces each on its own base when the template changes.',
  schemaRevision: 4,
  spec,
  status,
  subresources: {
    scale: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  columns: [
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'Current', type: 'integer', jsonPath: '.status.replicas' },
    { name: 'Up-To-Date', type: 'integer', jsonPath: '.status.updatedReplicas' },
    { name: 'Available', type: 'integer', jsonPath: '.status.availableReplicas' },
    { name: 'Revision', type: 'integer', jsonPath: '.status.revision' },
    { name: 'Rollout', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  ],
  rules: [
    {
      rule: `size(self.metadata.name) <= ${MAX_NAME_LENGTH}`,
      message: `metadata.name must have at most ${MAX_NAME_LENGTH} characters`,
    },
  ],
});

/** The part of a ModuleDeployment that the informer keeps. */
export interface CachedModuleDeployment extends CachedObject {
  readonly generation: number;
  readonly isDeleting: boolean;
  /** The annotation as it is, unchecked. */
  readonly confirmBatch: string | undefined;
  readonly spec: ModuleDeploymentSpec;
  readonly status: ModuleDeploymentStatus | undefined;
}

export const CACHED_MODULE_DEPLOYMENTS: WatchedKind<CachedModuleDeployment> = {
  kind: MODULE_DEPLOYMENTS.kind,
  path: collectionPathOf(MODULE_DEPLOYMENTS),
  indexers: { namespace: ({ namespace }) => namespace },
  project: projectModuleDeployment,
};

export function projectModuleDeployment(object: KubeObject): CachedModuleDeployment {
  const { metadata, spec, status } = object as ModuleDeploymentObject;
  return {
    ...metaOf(object),
    generation: metadata.generation ?? 0,
    isDeleting: metadata.deletionTimestamp !== undefined,
    confirmBatch: metadata.annotations?.[ANNOTATION.confirmBatch],
    spec: withoutNulls(spec),
    status,
  };
}

/** How many Pods there should be. */
export function replicasOf({ replicas = 1 }: ModuleDeploymentSpec): number {
  return replicas;
}

/** Selector in the form that a query of a list has. */
export function selectorOf({ selector }: ModuleDeploymentSpec): string {
  return Object.entries(selector.matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}
