import { CRDS, type Crd } from '../kube/crds.ts';
import type { ResourceKind } from '../kube/resource.ts';
import { PLATFORM_GROUP } from '../labels.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

type AnyKind = Pick<ResourceKind, 'group' | 'plural'>;

/** What a controller does with a kind, and so a rule of its role. */
export interface KindAccess {
  readonly kind: AnyKind;
  /** Default: the objects themselves. */
  readonly subresource?: 'status' | 'scale' | 'finalizers';
  readonly verbs: readonly Verb[];
  /** The only objects that it concerns. Default: any. */
  readonly names?: readonly string[];
  /** The only namespace that it concerns; `own` is that of the Pod. Default: all. */
  readonly namespace?: string;
  /** Which part of the program uses it, for what: the comment of the rule. */
  readonly use: string;
  /** Why no policy of the API server confines these writes. Default: one does, or the kind is the platform's own. */
  readonly notConfined?: string;
}

const LEASES: AnyKind = { group: 'coordination.k8s.io', plural: 'leases' };
const EVENTS: AnyKind = { group: '', plural: 'events' };

/** The watches of informers. */
export const READ: readonly Verb[] = ['list', 'watch'];
const WRITES: readonly Verb[] = ['create', 'update', 'patch', 'delete'];

/** The part of a definition that the access of its controller follows from. */
interface AccessSource {
  readonly access: readonly KindAccess[];
  readonly leads?: boolean;
  readonly events?: readonly unknown[];
  readonly crds?: readonly { readonly crd: Crd }[];
}

/** All that a controller does with the API, with what follows from its CRDs, its Events and its Lease. */
export function accessOf(definition: AccessSource): KindAccess[] {
  const { access, leads = false, events = [], crds = [] } = definition;
  const names = crds.map(({ crd }) => crd.metadata.name);
  const installs: KindAccess[] = [
    { kind: CRDS, verbs: ['create'], use: 'installCrd: a CRD cannot be limited by name before it exists.' },
    { kind: CRDS, verbs: ['get', 'patch'], names, use: 'installCrd: the CRDs of the platform.' },
  ];
  const leases: KindAccess = {
    kind: LEASES,
    verbs: ['get', 'create', 'patch'],
    namespace: 'own',
    use: 'Leader: which process acts. A Lease cannot be limited by name before it exists.',
  };
  const recorded: KindAccess = {
    kind: EVENTS,
    verbs: ['create', 'patch'],
    use: 'EventRecorder: Events about objects in any namespace.',
    notConfined: 'harm nothing',
  };
  return [
    ...access,
    ...(names.length > 0 ? installs : []),
    ...(events.length > 0 ? [recorded] : []),
    ...(leads ? [leases] : []),
  ];
}

/** `apps/deployments/scale`; the core group is ''. */
export function resourceOf({ kind, subresource }: Pick<KindAccess, 'kind' | 'subresource'>): string {
  return [kind.group, kind.plural, subresource].filter((part) => part !== undefined).join('/');
}

/** Whether it may change objects of any name. */
export function writesAny({ verbs, names }: KindAccess): boolean {
  return names === undefined && verbs.some((verb) => WRITES.includes(verb));
}

/** Why no policy confines it; undefined where one has to. */
export function reasonNotConfined({ kind, subresource, notConfined }: KindAccess): string | undefined {
  if (notConfined !== undefined) return notConfined;
  if (subresource === 'finalizers') return 'allows owner references only';
  return kind.group === PLATFORM_GROUP ? 'the platform’s own kind' : undefined;
}
