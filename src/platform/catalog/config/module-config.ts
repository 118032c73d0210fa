import Type, { type Static } from 'typebox';
import { crdOf } from '../../../kinds/crd.ts';
import { enumOf, rules, stringMap, time } from '../../../kinds/schema.ts';
import type { KubeObject } from '../../../kube/objects.ts';
import type { ResourceKind } from '../../../kube/resource.ts';
import { PLATFORM_GROUP } from '../../../labels.ts';
import { CONFIG_VERSION } from '../module/module.ts';
import { FORMATS, MAX_CONTENT_BYTES } from './formats.ts';

/** One source of the type, the CRD and the table in docs/kinds.md. */

/** Bounds for the size of the status. */
export const MAX_USERS = 20;
export const MAX_VERSIONS = 256;
export const MAX_PERSON_LENGTH = 100;
export const MAX_REASON_LENGTH = 256;
const MAX_INSTANCES = 100;
const MAX_INSTANCE_LENGTH = 100_000;
/** Name of a part for a single instance. */
export const INSTANCE_NAME = '^[0-9A-Za-z]([-._0-9A-Za-z]{0,61}[0-9A-Za-z])?$';

const DNS_LABEL = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';
const DNS_SUBDOMAIN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$';

const target = Type.Object(
  {
    kind: enumOf(['Module', 'Template'], {
      description: 'Who reads the file. `Template`: nobody; others name it as their `parent`.',
    }),
    app: Type.Optional(
      Type.String({
        maxLength: 63,
        pattern: '^[A-Za-z][0-9A-Za-z]*$',
        description: 'The application. Needed for a Module; a template belongs to none.',
      }),
    ),
    name: Type.Optional(
      Type.String({
        maxLength: 63,
        pattern: `(^$)|(${DNS_LABEL})`,
        description: 'Name of the module. Not set: the file is for the whole application.',
      }),
    ),
  },
  {
    description: 'Whose file it is. It cannot be changed.',
    ...rules(
      { rule: 'self == oldSelf', message: 'target cannot be changed: create another ModuleConfig' },
      {
        rule: "self.kind == 'Template' || has(self.app)",
        message: 'target.app is needed for kind: Module',
      },
      {
        rule: "self.kind != 'Template' || (!has(self.app) && !has(self.name))",
        message: 'target.app and target.name have no effect for kind: Template: whoever names it as parent gets it',
      },
    ),
  },
);

const spec = Type.Object({
  target,
  file: Type.String({
    minLength: 1,
    maxLength: 63,
    pattern: '^([0-9A-Za-z][-._0-9A-Za-z]*)?[0-9A-Za-z]$',
    description: 'Name of the file, such as `application.yaml`. It cannot be changed.',
    ...rules({ rule: 'self == oldSelf', message: 'file cannot be changed: create another ModuleConfig' }),
  }),
  format: enumOf(FORMATS, {
    description: 'How the file is read and merged. It cannot be changed.',
    ...rules({ rule: 'self == oldSelf', message: 'format cannot be changed: create another ModuleConfig' }),
  }),
  parent: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 253,
      pattern: DNS_SUBDOMAIN,
      description:
        'ModuleConfig of the namespace with the same format. Keys of `content` win over its keys; files of the formats `xml` and `text` replace it.',
    }),
  ),
  content: Type.String({
    maxLength: MAX_CONTENT_BYTES,
    description: 'The file. Nothing secret: whoever may read the object sees it.',
  }),
  instances: Type.Optional(
    stringMap(
      { maxLength: MAX_INSTANCE_LENGTH },
      {
        maxProperties: MAX_INSTANCES,
        description:
          'Parts for single instances, by name. Whoever asks over HTTP with the name as its profile gets the part over `content`; arguments do not have it.',
        ...rules({
          rule: `self.all(name, name.matches('${INSTANCE_NAME}'))`,
          message:
            'names of instances have at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit',
        }),
      },
    ),
  ),
  activation: Type.Optional(
    enumOf(['Automatic', 'Manual'], {
      description: '`Manual`: new content is a version that waits until `activeVersion` names it. Default `Automatic`.',
    }),
  ),
  activeVersion: Type.Optional(
    Type.String({
      maxLength: 23,
      pattern: `(^$)|(${CONFIG_VERSION})`,
      description: 'Id of the version to have in force, whatever the content. Not set: that of `content`.',
    }),
  ),
});

const condition = Type.Object({
  type: enumOf(['Ready', 'ParentChanged']),
  status: enumOf(['True', 'False', 'Unknown']),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionTime: time(),
});

const cause = {
  by: Type.Optional(Type.String({ maxLength: MAX_PERSON_LENGTH })),
  reason: Type.Optional(Type.String({ maxLength: MAX_REASON_LENGTH })),
};

const version = Type.Object({
  id: Type.String({ maxLength: 23 }),
  digest: Type.String({ description: 'SHA-256 of the merged content and the version of the parent.' }),
  source: Type.String({ description: 'Digest of the content before it is merged, and of the name of the parent.' }),
  time: time({ description: 'When the content was first seen.' }),
  lastActivated: Type.Optional(time({ description: 'When it came into force last. Not set: never.' })),
  ...cause,
  size: Type.Integer({ description: 'Bytes of the merged content.' }),
});

const status = Type.Object({
  observedGeneration: Type.Integer(),
  target: Type.String({ description: 'The target in words.' }),
  observedParent: Type.Optional(
    Type.String({ description: '`{name}@{version}` of the parent that the present content was merged over.' }),
  ),
  activeVersion: Type.Optional(Type.String({ description: 'Id of the version in force. Not set: none yet.' })),
  presentVersion: Type.Optional(
    Type.String({ description: 'Id of the version of the present content. Not set: it cannot be used.' }),
  ),
  versionCount: Type.Integer({ description: 'Number of versions.' }),
  versions: Type.Optional(
    Type.Array(version, {
      maxItems: MAX_VERSIONS,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['id'],
      description: 'The newest first. A version in use is kept, whatever the limit.',
    }),
  ),
  lastCause: Type.Optional(
    Type.Object(
      {
        ...cause,
        pending: Type.Optional(
          Type.Object(
            { source: Type.String(), ...cause },
            { description: 'What came with a content that has no version yet, such as one whose parent is missing.' },
          ),
        ),
      },
      { description: 'Annotations about the last change. Of a later content they count only if they have changed.' },
    ),
  ),
  userCount: Type.Integer({ description: 'Number of objects that use it.' }),
  usedBy: Type.Optional(
    Type.Array(Type.Object({ kind: Type.String(), name: Type.String() }), {
      maxItems: MAX_USERS,
      'x-kubernetes-list-type': 'atomic',
      description: `Objects that use it, the first ${MAX_USERS}.`,
    }),
  ),
  conditions: Type.Array(condition, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
});

export type ModuleConfigSpec = Static<typeof spec>;
export type ModuleConfigStatus = Static<typeof status>;
export type ModuleConfigCondition = Static<typeof condition>;
export type ConfigVersion = Static<typeof version>;
export type LastCause = NonNullable<ModuleConfigStatus['lastCause']>;
export type ChangeCause = Pick<ConfigVersion, 'by' | 'reason'>;

export interface ModuleConfigObject extends KubeObject {
  readonly spec: ModuleConfigSpec;
  readonly status?: ModuleConfigStatus;
}

export const MODULE_CONFIG_SCHEMAS = { spec, status };

export const MODULE_CONFIGS: ResourceKind = {
  group: PLATFORM_GROUP,
  version: 'v1alpha1',
  kind: 'ModuleConfig',
  plural: 'moduleconfigs',
  isNamespaced: true,
};

export const MODULE_CONFIG_CRD = crdOf({
  kind: MODULE_CONFIGS,
  shortNames: ['mcfg'],
  description: 'One file of configuration with its versions, of which one is in force.',
  schemaRevision: 4,
  spec,
  status,
  columns: [
    { name: 'Target', type: 'string', jsonPath: '.status.target' },
    { name: 'File', type: 'string', jsonPath: '.spec.file' },
    { name: 'Active', type: 'string', jsonPath: '.status.activeVersion' },
    { name: 'Versions', type: 'integer', jsonPath: '.status.versionCount' },
    { name: 'State', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  ],
  rules: [
    {
      rule: `size(bytes(self.spec.content)) <= ${MAX_CONTENT_BYTES}`,
      message: `spec.content must have at most ${MAX_CONTENT_BYTES} bytes`,
    },
    {
      rule: `!has(self.spec.instances) || size(bytes(self.spec.content)) + self.spec.instances.map(name, size(bytes(self.spec.instances[name]))).sum() <= ${MAX_CONTENT_BYTES}`,
      message: `spec.content and spec.instances together must have at most ${MAX_CONTENT_BYTES} bytes`,
    },
    {
      rule: '!has(self.spec.parent) || self.spec.parent != self.metadata.name',
      message: 'spec.parent must be another ModuleConfig',
    },
  ],
});

/** The target for people: `Module shop cart`. */
export function targetText({ kind, app, name }: ModuleConfigSpec['target']): string {
  return [kind, app, name].filter((part) => part !== undefined && part !== '').join(' ');
}
