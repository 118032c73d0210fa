import type { ResourceKind } from '../kube/resource.ts';
import { PLATFORM_GROUP } from '../labels.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export type AnyKind = Pick<ResourceKind, 'group' | 'plural'>;

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
  /**
   * It concerns only namespaces in which an admin has bound the role of that name to the account. Default: no such role
   * is needed.
   */
  readonly optInRole?: string;
  /** Variable of the configuration with which the controller does not do it. Default: it always does. */
  readonly unless?: string;
  /** Which part of the program uses it, for what: the comment of the rule. */
  readonly use: string;
  /** Why no policy of the API server confines these writes. Default: one does, or the kind is the platform's own. */
  readonly notConfined?: string;
}

/** The watches of informers. */
export const READ: readonly Verb[] = ['list', 'watch'];
const WRITES: readonly Verb[] = ['create', 'update', 'patch', 'delete'];

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
