import Type, { type Static } from 'typebox';
import { crdOf } from '../../../kinds/crd.ts';
import { countOrPercent, enumOf, rules } from '../../../kinds/schema.ts';
import type { KubeObject } from '../../../kube/objects.ts';
import type { ResourceKind } from '../../../kube/resource.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import { type ModuleStatus, status } from './module-status-schema.ts';

/** One source of the type, the CRD and the table in docs/catalog.md. */

/** A StatefulSet adds an ordinal to it, and a label value ends at 63 characters. */
const MAX_NAME_LENGTH = 58;
const MAX_REPLICAS = 999;
/** Bounds for the API server's estimate of what its checks cost. */
const MAX_PORTS = 32;
const MAX_ARGS = 64;
const MAX_VERSIONS = 16;
const MAX_CONFIGS = 16;

export const RELEASE_ID = '^([0-9A-Za-z][-_.0-9A-Za-z]*)?[0-9A-Za-z]$';
/** `YYYYMMDDhhmmss-{8 hex}`. */
export const CONFIG_VERSION = '^[0-9]{14}-[0-9a-f]{8}$';
export const SHA256 = '^[0-9a-f]{64}$';

export const WORKLOADS = ['ModuleDeployment', 'Deployment', 'StatefulSet', 'DaemonSet'] as const;
export type WorkloadKind = (typeof WORKLOADS)[number];

const ANY_OBJECT = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const ANY_LIST = { type: 'array', maxItems: 64, items: ANY_OBJECT };

/** Fields of a Pod or a container that a module cannot have, with their schemas and the reasons. */
const REFUSED: Readonly<Record<string, readonly [schema: object, why: string]>> = {
  env: [ANY_LIST, 'no environment reaches a module: use args'],
  envFrom: [ANY_LIST, 'no environment reaches a module: use args'],
  command: [
    { type: 'array', maxItems: 64, items: { type: 'string' } },
    'a base installs the jar of a module: use args',
  ],
  resources: [ANY_OBJECT, 'a module shares the memory and the processors of its base'],
  volumes: [ANY_LIST, 'a module has no file system of its own'],
  mounts: [ANY_LIST, 'a module has no file system of its own'],
  hostNetwork: [{ type: 'boolean' }, 'a module has the network of its base'],
  hostIPC: [{ type: 'boolean' }, 'a module is a part of the process of its base'],
  hostPorts: [ANY_LIST, 'a module has the network of its base'],
  serviceAccount: [{ type: 'string' }, 'a module has the credentials of its base'],
  initContainers: [ANY_LIST, 'a module is a jar in its base, not a container'],
  imagePullPolicy: [{ type: 'string' }, 'a base fetches the jar whenever it installs it'],
  launcherType: [{ type: 'string' }, 'the agent of the base guards the module'],
};

const refusals = Object.entries(REFUSED).map(([field, [, why]]) => ({
  rule: `!has(self.${field})`,
  message: `${field} has no effect on a module: ${why}`,
}));

const base = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 63, description: 'Name of the bases that the module runs on.' }),
    versions: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
        maxItems: MAX_VERSIONS,
        'x-kubernetes-list-type': 'set',
        description: 'Versions of bases that it fits. Not set: any.',
      }),
    ),
    env: Type.Optional(
      Type.String({ minLength: 1, maxLength: 63, description: 'ENV of the bases. Not set: that of the platform.' }),
    ),
    clusterName: Type.Optional(
      Type.String({ minLength: 1, maxLength: 63, description: '`clusterName` of the bases. Not set: any.' }),
    ),
    ability: Type.Optional(
      enumOf(['AppRequired', 'ModuleRequired', 'AppOrModulePreferred', 'None'], {
        description:
          'Nodes with the label `platform.koupleless.io/ability.{namespace}.{app}`, or `….{app}-{module}`: required, or preferred with the weights 30 and 60. Default `None`.',
      }),
    ),
  },
  { description: 'Which bases run it.' },
);

const port = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 15,
    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
    description: 'Name of the port.',
  }),
  port: Type.Integer({ minimum: 1, maximum: 65_535, description: 'Where the module listens, and the Service too.' }),
  protocol: Type.Optional(enumOf(['TCP', 'UDP'], { description: 'Default `TCP`.' })),
  appProtocol: Type.Optional(Type.String({ maxLength: 253, description: 'As in a Service.' })),
});

const rollingUpdate = Type.Object({
  maxSurge: Type.Optional(countOrPercent({ description: 'As in a ModuleDeployment or a Deployment.' })),
  maxUnavailable: Type.Optional(countOrPercent({ description: 'As in the workload.' })),
  placement: Type.Optional(enumOf(['SameBase', 'Any'], { description: 'As in a ModuleDeployment.' })),
});

const batch = Type.Object({
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Number of batches.' })),
  useBeta: Type.Optional(Type.Boolean({ description: 'The first batch is one Pod.' })),
  needConfirm: Type.Optional(Type.Boolean({ description: 'Wait after each batch until a person confirms it.' })),
  intervalSeconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 604_800, description: 'Wait this long after each batch, s.' }),
  ),
});

const STRATEGIES: Readonly<Record<WorkloadKind, readonly string[]>> = {
  ModuleDeployment: ['RollingUpdate', 'Batch', 'Recreate', 'OnDelete'],
  Deployment: ['RollingUpdate', 'Recreate'],
  StatefulSet: ['RollingUpdate', 'OnDelete'],
  DaemonSet: ['RollingUpdate', 'OnDelete'],
};

const strategy = Type.Object(
  {
    type: Type.Optional(
      enumOf(STRATEGIES.ModuleDeployment, { description: 'As in the workload. Default `RollingUpdate`.' }),
    ),
    rollingUpdate: Type.Optional(rollingUpdate),
    batch: Type.Optional(batch),
  },
  {
    description: 'How Pods of an older release are replaced.',
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
);

const kindOf = "(has(self.workload) ? self.workload : 'ModuleDeployment')";

const deploy = Type.Object(
  {
    workload: Type.Optional(
      enumOf(WORKLOADS, {
        default: 'ModuleDeployment',
        description: 'Kind of the workload; default `ModuleDeployment`. It cannot be changed.',
      }),
    ),
    replicas: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_REPLICAS,
        default: 1,
        description: 'How many copies there should be; default 1. Without effect where the bases decide.',
      }),
    ),
    peer: Type.Optional(
      Type.Boolean({ description: 'One copy on each base that fits. Default false; only for a ModuleDeployment.' }),
    ),
    notStacked: Type.Optional(
      Type.Boolean({
        description: 'At most one copy of a release on a base. Default true; a second one there would be none.',
      }),
    ),
    strategy: Type.Optional(strategy),
    readinessGates: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 317 }), {
        maxItems: 16,
        'x-kubernetes-list-type': 'set',
        description: 'Conditions that a Pod needs to be Ready, besides those of the module.',
      }),
    ),
    // Known only so that they can be refused with a reason.
    ...Object.fromEntries(
      Object.entries(REFUSED).map(([field, [schema]]) => [field, Type.Optional(Type.Unsafe<unknown>(schema))]),
    ),
  },
  {
    default: {},
    description: 'How it runs.',
    ...rules(
      {
        rule: `!has(self.strategy) || !has(self.strategy.type) || ${celOf(STRATEGIES)}`,
        message:
          'strategy.type must be one of the workload: ' +
          WORKLOADS.map((kind) => `${kind} ${STRATEGIES[kind].join(', ')}`).join('; '),
      },
      {
        rule: `!has(self.peer) || !self.peer || ${kindOf} == 'ModuleDeployment'`,
        message: 'peer needs workload: ModuleDeployment; a DaemonSet has one copy on each base anyway',
      },
      {
        rule: `!has(self.strategy) || !has(self.strategy.rollingUpdate) || !has(self.strategy.rollingUpdate.placement) || ${kindOf} == 'ModuleDeployment'`,
        message: 'strategy.rollingUpdate.placement needs workload: ModuleDeployment',
      },
      {
        rule: `!has(self.strategy) || !has(self.strategy.rollingUpdate) || !has(self.strategy.rollingUpdate.maxSurge) || ${kindOf} in ['ModuleDeployment', 'Deployment']`,
        message: 'strategy.rollingUpdate.maxSurge needs workload: ModuleDeployment or Deployment',
      },
      ...refusals,
    ),
  },
);

/** An expression about `workload` and `strategy.type`. */
function celOf(allowed: Readonly<Record<string, readonly string[]>>): string {
  const pairs = Object.entries(allowed).map(
    ([kind, types]) =>
      `(${kindOf} == '${kind}' && self.strategy.type in [${types.map((type) => `'${type}'`).join(', ')}])`,
  );
  return `(${pairs.join(' || ')})`;
}

const config = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 253, description: 'Name of a ModuleConfig of the namespace.' }),
  follow: Type.Optional(
    enumOf(['Release', 'Immediately'], {
      description: 'When another version comes into force: with the next release (default), or at once.',
    }),
  ),
  version: Type.Optional(
    Type.String({ maxLength: 63, pattern: CONFIG_VERSION, description: 'Version to stay with. `rollbackTo` sets it.' }),
  ),
  as: Type.Optional(
    enumOf(['Arguments', 'Http'], {
      description:
        'How it reaches the module: as arguments (default), or read over HTTP by its client of Spring Cloud Config.',
    }),
  ),
});
/** CEL: a field of the release is as it was. */
function isUnchanged(field: string): string {
  return `((has(self.${field}) ? self.${field} : '') == (has(oldSelf.${field}) ? oldSelf.${field} : ''))`;
}

const release = Type.Object(
  {
    id: Type.String({ maxLength: 63, pattern: RELEASE_ID, description: 'Which release runs; a new id publishes it.' }),
    image: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description: 'Address of the jar. Not set: that of the ModuleRelease of the same name.',
      }),
    ),
    version: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 63,
        description:
          'Version in the manifest of the jar. Not set: that of the ModuleRelease, else of the name of the jar.',
      }),
    ),
    sha256: Type.Optional(Type.String({ pattern: SHA256, description: 'Digest of the jar, in hex.' })),
  },
  {
    description: 'What runs. Without it there are no Pods.',
    ...rules(
      {
        rule: "!has(self.image) || self.image.contains('.jar')",
        message: 'image must be the address of a jar, such as https://jars.example.com/shop-1.0.0-ark-biz.jar',
      },
      // `rollbackTo` may have set them, and a merge patch of the id alone leaves them.
      {
        rule: `self.id == oldSelf.id || !has(self.image) || !(${['image', 'version', 'sha256'].map(isUnchanged).join(' && ')})`,
        message:
          'release has another id and the jar of the former one: set image too, or remove image (null) if a ModuleRelease has the id',
      },
      {
        rule: `self.id == oldSelf.id || !has(self.sha256) || !${isUnchanged('sha256')} || ${isUnchanged('image')}`,
        message: 'release.sha256 is that of the former release: set it too, or remove it (null)',
      },
    ),
  },
);

const spec = Type.Object(
  {
    app: Type.String({
      maxLength: 63,
      pattern: '^[A-Za-z][0-9A-Za-z]*$',
      description: 'The application that it is a part of.',
      ...rules({ rule: 'self == oldSelf', message: 'app cannot be changed: create another Module' }),
    }),
    module: Type.String({
      maxLength: 63,
      pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      description: 'Name of the module on its base.',
      ...rules({ rule: 'self == oldSelf', message: 'module cannot be changed: create another Module' }),
    }),
    important: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 20, description: 'How important it is; default 3. For people.' }),
    ),
    base,
    ports: Type.Optional(
      Type.Array(port, {
        maxItems: MAX_PORTS,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'Ports of the module. With any, it has a headless Service of its name.',
        ...rules({
          rule: "self.all(p, self.exists_one(q, p.port == q.port && (has(p.protocol) ? p.protocol : 'TCP') == (has(q.protocol) ? q.protocol : 'TCP')))",
          message: 'ports: two of them have the same number and protocol',
        }),
      }),
    ),
    args: Type.Optional(
      Type.Array(Type.String({ maxLength: 4096 }), {
        maxItems: MAX_ARGS,
        description: 'Arguments of its main method.',
      }),
    ),
    configs: Type.Optional(
      Type.Array(config, {
        maxItems: MAX_CONFIGS,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'Its configuration. Of one key that several have, the last one counts.',
      }),
    ),
    deploy: Type.Optional(deploy),
    release: Type.Optional(release),
    rollbackTo: Type.Optional(
      Type.Object(
        { revision: Type.Optional(Type.Integer({ minimum: 0, description: '0 (default): the previous one.' })) },
        {
          description:
            'Restores the release and the versions of the configuration of `status.history`; the controller removes the field then.',
        },
      ),
    ),
  },
  {
    description: 'What there should be.',
    ...rules({
      rule: "(has(self.deploy) && has(self.deploy.workload) ? self.deploy.workload : 'ModuleDeployment') == (has(oldSelf.deploy) && has(oldSelf.deploy.workload) ? oldSelf.deploy.workload : 'ModuleDeployment')",
      message: 'deploy.workload cannot be changed: create another Module',
    }),
  },
);

export type ModuleSpec = Static<typeof spec>;

export interface ModuleObject extends KubeObject {
  readonly spec: ModuleSpec;
  readonly status?: ModuleStatus;
}

export const MODULE_SCHEMAS = { spec, status };

export const MODULES: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'Module',
  plural: 'modules',
  isNamespaced: true,
};

export const MODULE_CRD = crdOf({
  kind: MODULES,
  shortNames: ['mod'],
  categories: ['all'],
  description: 'A module: what runs, on which bases, and which release. Makes its workload and its Service.',
  schemaRevision: 11,
  spec,
  status,
  subresources: {
    scale: {
      specReplicasPath: '.spec.deploy.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  columns: [
    { name: 'App', type: 'string', jsonPath: '.spec.app' },
    { name: 'Base', type: 'string', jsonPath: '.spec.base.name' },
    { name: 'Release', type: 'string', jsonPath: '.status.release.id' },
    { name: 'Desired', type: 'integer', jsonPath: '.spec.deploy.replicas' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas' },
    { name: 'State', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Config', type: 'string', jsonPath: '.status.conditions[?(@.type=="ConfigFound")].reason', priority: 1 },
    { name: 'Image', type: 'string', jsonPath: '.status.release.image', priority: 1 },
  ],
  rules: [
    {
      rule: "self.metadata.name == self.spec.app.lowerAscii() + '-' + self.spec.module",
      message: 'metadata.name must be {app}-{module}, with the app in lower case',
    },
    {
      rule: `size(self.metadata.name) <= ${MAX_NAME_LENGTH}`,
      message: `metadata.name must have at most ${MAX_NAME_LENGTH} characters`,
    },
  ],
});
