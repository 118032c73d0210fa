import { bearerOf, type TokenAccess, type TokenVerdict } from '../../reconcile/token-access.ts';
import type { TokenFiles } from '../../server/token-files.ts';
import { EXPORT_SERVICES } from './export-service.ts';

/** The decision about a request. `Balancer`: it has a token of the group. */
export type Access = 'Balancer' | TokenVerdict;

/** What a request wants to read. */
export interface FeedScope {
  readonly group: string;
  /** Undefined: of all namespaces. */
  readonly namespace: string | undefined;
}

/** Equal for equal scopes. */
export function scopeKey({ group, namespace }: FeedScope): string {
  return JSON.stringify([group, namespace]);
}

/** Who asks. */
export interface Caller {
  /** `Authorization: Bearer …`. */
  readonly header: string | undefined;
  /** Address that the request comes from. */
  readonly source: string;
  /** It has a watch already. */
  readonly isWatching?: boolean;
}

export interface FeedAccessOptions {
  /** Undefined: there are no tokens but those of the cluster. */
  readonly tokens: Pick<TokenFiles, 'namesOf'> | undefined;
  readonly users: Pick<TokenAccess, 'of'>;
}

/**
 * Who may read the feed: whoever may `get` ExportServices, in the namespace that is asked for or in all of them, and
 * the balancers that have a token of the group.
 */
export class FeedAccess {
  readonly #options: FeedAccessOptions;

  constructor(options: FeedAccessOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async of({ header, source, isWatching = false }: Caller, { group, namespace }: FeedScope): Promise<Access> {
    const token = bearerOf(header);
    if (token === undefined) return 'Unauthenticated';
    const groups = this.#options.tokens?.namesOf(token);
    if (groups !== undefined) return groups.has(group) ? 'Balancer' : 'Forbidden';
    const attributes = {
      group: EXPORT_SERVICES.group,
      version: EXPORT_SERVICES.version,
      resource: EXPORT_SERVICES.plural,
      verb: 'get',
      ...(namespace !== undefined && { namespace }),
    };
    return this.#options.users.of({ token, source, isKnown: isWatching }, attributes);
  }
}
