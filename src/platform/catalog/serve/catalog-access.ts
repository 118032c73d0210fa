import { bearerOf, type TokenAccess, type TokenVerdict } from '../../../reconcile/token-access.ts';
import type { TokenFiles } from '../../../server/token-files.ts';

/** What a request wants to read: objects of a kind in a namespace. */
export interface CatalogScope {
  readonly namespace: string;
  /** The kind that an owner of a token of the cluster needs the right to `get`. */
  readonly kind: { readonly group: string; readonly version: string; readonly plural: string };
}

/** Somebody who may read. */
export interface CatalogReader {
  /** Whether it may read what belongs to an application of the namespace; undefined: what belongs to none. */
  mayRead(app: string | undefined): boolean;
}

export type CatalogRefusal = Exclude<TokenVerdict, 'Allowed'>;

export interface CatalogAccessOptions {
  /** Files are named `{namespace}.{app}`. Undefined: there are no tokens but those of the cluster. */
  readonly tokens: Pick<TokenFiles, 'namesOf'> | undefined;
  readonly users: Pick<TokenAccess, 'of'>;
}

const EVERYTHING: CatalogReader = { mayRead: () => true };

/** Who may read what the catalog serves: whoever may `get` the kind in the namespace, and applications with a token. */
export class CatalogAccess {
  readonly #options: CatalogAccessOptions;

  constructor(options: CatalogAccessOptions) {
    this.#options = options;
  }

  /** `header`: `Authorization: Bearer …`. `source`: the address that the request comes from. Never rejects. */
  async of(
    header: string | undefined,
    source: string,
    { namespace, kind }: CatalogScope,
  ): Promise<CatalogReader | CatalogRefusal> {
    const token = bearerOf(header);
    if (token === undefined) return 'Unauthenticated';
    const owners = this.#options.tokens?.namesOf(token);
    if (owners !== undefined) return applicationOf(owners, namespace);
    const { group, version, plural } = kind;
    const attributes = { group, version, resource: plural, verb: 'get', namespace };
    const verdict = await this.#options.users.of({ token, source }, attributes);
    return verdict === 'Allowed' ? EVERYTHING : verdict;
  }
}

/** Whether a text is `{namespace}.{app}`. */
export function isAppOfNamespace(text: string): boolean {
  return /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\.[A-Za-z][0-9A-Za-z]*$/.test(text);
}

/** No name of a namespace has a dot. */
function applicationOf(owners: Iterable<string>, namespace: string): CatalogReader | 'Forbidden' {
  const start = `${namespace}.`;
  const apps = [...owners].filter((owner) => owner.startsWith(start)).map((owner) => owner.slice(start.length));
  return apps.length === 0 ? 'Forbidden' : { mayRead: (app) => app !== undefined && apps.includes(app) };
}
