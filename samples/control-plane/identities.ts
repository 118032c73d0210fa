import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiClient, ApiError } from './api-client.ts';
import type { CertificateAuthority } from './certificates.ts';
import { type Credential, renderKubeconfig } from './kubeconfig.ts';

export type Identity =
  /** A client certificate. Default groups: `system:masters` for the user `admin`, none for others. */
  | { user: string; groups?: string[] }
  /** `namespace/name`; a token of the TokenRequest API. Default expiry 24 h, the shortest that the API grants 10 min. */
  | { serviceAccount: string; expirationSeconds?: number };

const ONE_DAY_SECONDS = 86_400;

interface NamedCredential {
  userName: string;
  credential: Credential;
}

export interface IdentityIssuerOptions {
  server: string;
  authority: CertificateAuthority;
  admin: ApiClient;
  /** Where the kubeconfig files go. */
  directory: string;
}

/** Makes credentials of one control plane, as kubeconfig files and as clients. */
export class IdentityIssuer {
  readonly #options: IdentityIssuerOptions;
  readonly #clients: ApiClient[] = [];
  #fileCount = 0;

  constructor(options: IdentityIssuerOptions) {
    this.#options = options;
  }

  /** The path of a new file. */
  async kubeconfig(identity: Identity): Promise<string> {
    const { server, authority, directory } = this.#options;
    const { userName, credential } = await this.#credentialOf(identity);
    await mkdir(directory, { recursive: true });
    const path = join(directory, `${userName.replace(/[^\w.-]/g, '_')}-${++this.#fileCount}.kubeconfig`);
    const text = renderKubeconfig({ server, certificateAuthority: authority.certificate, userName, credential });
    await writeFile(path, text, { mode: 0o600 });
    return path;
  }

  /** For a client in another process. */
  async credential(identity: Identity): Promise<Credential> {
    return (await this.#credentialOf(identity)).credential;
  }

  async client(identity: Identity): Promise<ApiClient> {
    const { server, authority } = this.#options;
    const credential = await this.credential(identity);
    const client = new ApiClient({ server, certificateAuthority: authority.certificate, credential });
    this.#clients.push(client);
    return client;
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #credentialOf(identity: Identity): Promise<NamedCredential> {
    if ('user' in identity) {
      const { user, groups = user === 'admin' ? ['system:masters'] : [] } = identity;
      return {
        userName: user,
        credential: this.#options.authority.issue({ commonName: user, organizations: groups }),
      };
    }
    const { serviceAccount, expirationSeconds = ONE_DAY_SECONDS } = identity;
    const [namespace, name, more] = serviceAccount.split('/');
    if (!namespace || !name || more !== undefined) {
      throw new Error(`serviceAccount: expected "namespace/name", got "${serviceAccount}"`);
    }
    const token = await requestToken(this.#options.admin, { namespace, name, expirationSeconds });
    return { userName: `system:serviceaccount:${namespace}:${name}`, credential: { token } };
  }
}

async function requestToken(
  admin: ApiClient,
  { namespace, name, expirationSeconds }: { namespace: string; name: string; expirationSeconds: number },
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } };
  try {
    return (await admin.post(path, body)).status.token;
  } catch (error) {
    if (!(error instanceof ApiError) || error.statusCode !== 404) throw error;
    throw new Error(`service account ${namespace}/${name} does not exist: apply it first`, { cause: error });
  }
}
