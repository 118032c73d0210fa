import type { ApiClient, KubeObject } from './api-client.ts';
import type { CertificateAuthority, CertificateRequest, KeyPair } from './certificates.ts';
import { type Identity, IdentityIssuer } from './identities.ts';
import type { Credential } from './kubeconfig.ts';
import { layoutOf } from './layout.ts';
import { applyManifests } from './manifests.ts';

export interface AccessOptions {
  /** `https://127.0.0.1:port` */
  server: string;
  /** The user `admin` of the group `system:masters`. */
  admin: ApiClient;
  authority: CertificateAuthority;
  /** Everything that the control plane has written. */
  directory: string;
}

/** What one may do with a running control plane, also from a process that has not started it. */
export class ControlPlaneAccess {
  /** `https://127.0.0.1:port` */
  readonly server: string;
  /** The user `admin` of the group `system:masters`. */
  readonly admin: ApiClient;
  /** Everything that this control plane has written; goes with it. */
  readonly directory: string;
  readonly #authority: CertificateAuthority;
  readonly #identities: IdentityIssuer;

  constructor(options: AccessOptions) {
    this.server = options.server;
    this.admin = options.admin;
    this.directory = options.directory;
    this.#authority = options.authority;
    this.#identities = new IdentityIssuer({ ...options, directory: layoutOf(options.directory).kubeconfigs });
  }

  /** Its key too: whoever has it may be anybody. */
  get authority(): CertificateAuthority {
    return this.#authority;
  }

  /** In PEM. */
  get certificateAuthority(): string {
    return this.#authority.certificate;
  }

  /** The path of a new kubeconfig file for that identity. */
  kubeconfig(identity: Identity): Promise<string> {
    return this.#identities.kubeconfig(identity);
  }

  /** What that identity shows to the API server: for a client in another process. */
  credential(identity: Identity): Promise<Credential> {
    return this.#identities.credential(identity);
  }

  /** A client with the rights of that identity. */
  client(identity: Identity): Promise<ApiClient> {
    return this.#identities.client(identity);
  }

  /** Signed by the authority of this control plane, for example for a kubelet's server. */
  issueCertificate(request: CertificateRequest): KeyPair {
    return this.#authority.issue(request);
  }

  /** Server-side apply as admin: YAML of one or more documents, an object, or several; the applied objects in order. */
  apply(manifests: string | KubeObject | KubeObject[]): Promise<KubeObject[]> {
    return applyManifests(this.admin, manifests);
  }

  /** Ends the connections of the clients that `client` has made. */
  protected closeClients(): Promise<void> {
    return this.#identities.close();
  }
}
