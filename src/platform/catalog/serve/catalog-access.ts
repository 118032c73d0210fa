import { bearerOf, type TokenAccess, type TokenVerdict } from '../../../reconcile/token-access.ts';
import type { TokenFiles } from '../../../server/token-files.ts';

/** What a request wants to read: something of a namespace. */
export interface CatalogScope {
  readonly namespace: string;
  /** The application that it is of. Undefined: each application of the namespace may read it. */
  readonly app: string | undefined;
  /** The kind that its owner needs the right to `get`. */
  readonly kind: { readonly group: string; readonly version: string; readonly plural: string };
}

export interface CatalogAccessOptions {
  /** Files are named `{namespace}.{app}`. Undefined: there are no tokens but those of the cluster. */
  readonly tokens: Pick<TokenFiles, 'namesOf'> | undefined;
  readonly users: Pick<TokenAccess, 'of'>;
}

/** Who may read what the catalog serves: whoever may `get` the kind in the namespace, and applications with a token. */
export class CatalogAccess {
  readonly #options: CatalogAccessOptions;

  constructor(options: CatalogAccessOptions) {
    this.#options = options;
  }

  /** `header`: `Authorization: Bearer …`. `source`: the address that the request comes from. Never rejects. */
  async of(header: string | undefined, source: string, { namespace, app, kind }: CatalogScope): Promise<TokenVerdict> {
    const token = bearerOf(header);
    if (token === undefined) return 'Unauthenticated';
    const owners = this.#options.tokens?.namesOf(token);
    if (owners !== undefined) return [...owners].some((owner) => isOf(owner, namespace, app)) ? 'Allowed' : 'Forbidden';
    const { group, version, plural } = kind;
    return this.#options.users.of({ token, source }, { group, version, resource: plural, verb: 'get', namespace });
  }
}

/** Whether a text is `{namespace}.{app}`. */
export function isAppOfNamespace(text: string): boolean {
  return /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\.[A-Za-z][0-9A-Za-z]*$/.test(text);
}

/** No name of a namespace has a dot. */
function isOf(owner: string, namespace: string, app: string | undefined): boolean {
  return app === undefined ? owner.startsWith(`${namespace}.`) : owner === `${namespace}.${app}`;
}
