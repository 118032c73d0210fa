import type { KubeObject } from '../kube/objects.ts';
import { apiVersionOf, type ResourceKind } from '../kube/resource.ts';

export type AdmissionOperation = 'CREATE' | 'UPDATE';

/** `admission.k8s.io/v1` AdmissionRequest, as far as it is used. Not validated by the API server yet. */
export interface AdmissionRequest<T extends KubeObject = KubeObject> {
  readonly operation: AdmissionOperation;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly object: T;
  /** The stored version; undefined for a CREATE. */
  readonly oldObject: T | undefined;
}

/** What becomes of a request. `warnings` are shown to whoever sent it. */
export type Verdict<T extends KubeObject = KubeObject> =
  | { readonly isAllowed: true; readonly object?: T; readonly warnings?: readonly string[] }
  | { readonly isAllowed: false; readonly message: string };

/** Changes objects before they are validated, or only judges them. */
export type WebhookPath = 'mutate' | 'validate';

/** Decides from the request and from caches. Writes nothing: the request may be a dry run, and may still be refused. */
export type WebhookHandler<T extends KubeObject = KubeObject> = (request: AdmissionRequest<T>) => Verdict<T>;

/** What the controllers of a process say about requests. Registering costs nothing while no server asks. */
export class Webhooks {
  readonly #handlers = new Map<string, WebhookHandler>();

  /** The type is a claim of the caller, as that of a resource client is. */
  register<T extends KubeObject>(
    path: WebhookPath,
    kind: ResourceKind,
    operations: readonly AdmissionOperation[],
    handler: WebhookHandler<T>,
  ): void {
    for (const operation of operations) {
      this.#handlers.set(keyOf(path, operation, apiVersionOf(kind), kind.plural), handler as unknown as WebhookHandler);
    }
  }

  /** `apiVersion`: such as `apps/v1`. */
  find(path: WebhookPath, operation: string, apiVersion: string, plural: string): WebhookHandler | undefined {
    return this.#handlers.get(keyOf(path, operation, apiVersion, plural));
  }
}

function keyOf(path: WebhookPath, operation: string, apiVersion: string, plural: string): string {
  return `${path} ${operation} ${apiVersion} ${plural}`;
}
