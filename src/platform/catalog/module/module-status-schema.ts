import Type, { type Static } from 'typebox';
import { enumOf, time } from '../../../kinds/schema.ts';

/** Bound for the size of the status. */
export const MAX_PROBLEMS = 10;

const baseVersions = Type.Optional(
  Type.Array(Type.String(), { description: 'Versions of bases that it fits. Not set: those of the Module.' }),
);

const configs = Type.Optional(
  Type.Array(
    Type.Object({
      name: Type.String({ description: 'Name of a ModuleConfig.' }),
      version: Type.String(),
      as: Type.Optional(enumOf(['Http'], { description: 'How it reaches the module. Not set: as arguments.' })),
    }),
    {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      description: 'Its configuration. Not set: none.',
    },
  ),
);

const condition = Type.Object({
  type: enumOf(['Ready', 'Progressing', 'ReleaseFound', 'ConfigFound', 'Contested', 'Altered']),
  status: enumOf(['True', 'False', 'Unknown']),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionTime: time(),
});

const revision = Type.Object({
  revision: Type.Integer({ description: 'Counts up. What comes back gets a new number.' }),
  id: Type.String(),
  image: Type.String(),
  version: Type.Optional(Type.String()),
  sha256: Type.Optional(Type.String()),
  baseVersions,
  configs,
  time: time({ description: 'When it came into force.' }),
});

const problem = Type.Object({
  pod: Type.String(),
  node: Type.Optional(Type.String({ description: 'Node of its base, `vnode.{identity}`.' })),
  release: Type.Optional(Type.String({ description: 'Id of the release that it was made for.' })),
  state: Type.String({ description: 'Why it does not serve, in one word.' }),
  message: Type.Optional(Type.String({ description: 'The same in words.' })),
});

/** Status of a Module. */
export const status = Type.Object({
  observedGeneration: Type.Integer(),
  replicas: Type.Integer({ description: 'Pods that there are.' }),
  readyReplicas: Type.Integer({ description: 'Pods that are Ready.' }),
  updatedReplicas: Type.Integer({ description: 'Pods of the release in force.' }),
  selector: Type.String({ description: 'For the scale subresource.' }),
  release: Type.Optional(
    Type.Object(
      {
        id: Type.String(),
        image: Type.String({ description: 'Address of the jar.' }),
        version: Type.Optional(Type.String()),
        sha256: Type.Optional(Type.String()),
        baseVersions,
        configs,
        time: time({ description: 'When it came into force.' }),
      },
      { description: 'The release in force.' },
    ),
  ),
  history: Type.Optional(
    Type.Array(revision, {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['revision'],
      description: 'Releases that were in force, each with its configuration, the newest first; 10 at most.',
    }),
  ),
  problems: Type.Optional(
    Type.Array(problem, {
      maxItems: MAX_PROBLEMS,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['pod'],
      description: `Pods that do not serve, those that fail first; ${MAX_PROBLEMS} at most.`,
    }),
  ),
  conditions: Type.Array(condition, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
});

export type ModuleStatus = Static<typeof status>;
export type ModuleCondition = Static<typeof condition>;
export type ModuleRevision = Static<typeof revision>;
export type ModuleProblem = Static<typeof problem>;
