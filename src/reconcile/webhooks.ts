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

/** A webhook of the API server: which requests come, and what becomes of them while the platform is away. */
export interface WebhookRule {
  /** Its name is `{name}.platform.koupleless.io`. */
  readonly name: string;
  readonly path: WebhookPath;
  readonly kind: ResourceKind;
  readonly operations: readonly AdmissionOperation[];
  /** `Ignore` for kinds of others, which the platform must not stop. */
  readonly failurePolicy: 'Fail' | 'Ignore';
  /** Labels of the objects that it is asked about. Default: any. */
  readonly labels?: Readonly<Record<string, string>>;
  /** CEL conditions, all of them True, or the name of a template of the chart that has them. Default: none. */
  readonly conditions?: string | readonly { readonly name: string; readonly expression: string }[];
  /** Sentences about which requests come and what happens without the platform: the comment in the manifest. */
  readonly use: string;
}

/** Takes the handlers of one controller. */
export interface WebhookRegistry {
  /**
   * The type is a claim of the caller, as that of a resource client is. Throws for a rule that the controller does not
   * declare.
   */
  register<T extends KubeObject>(rule: WebhookRule, handler: WebhookHandler<T>): void;
}

interface Registered {
  readonly handler: WebhookHandler;
  readonly isReady: () => boolean;
}

/** The handlers of all controllers of a process. Registering costs nothing while no server asks. */
export class Webhooks {
  readonly #byKey = new Map<string, Registered>();
  readonly #rules = new Set<WebhookRule>();
  readonly #isKnown: (rule: WebhookKey) => Promise<boolean>;

  /** `isKnown`: whether a controller of this program, also one that is off, declares a webhook for such requests. */
  constructor(isKnown: (rule: WebhookKey) => Promise<boolean> = async () => false) {
    this.#isKnown = isKnown;
  }

  /** The registry of one controller. `isReady`: whether the caches that its handlers read are whole. */
  registryOf(name: string, rules: readonly WebhookRule[], isReady: () => boolean): WebhookRegistry {
    return {
      register: (rule, handler) => {
        if (!rules.includes(rule)) throw new Error(`controller ${name} does not declare the webhook ${rule.name}`);
        this.#rules.add(rule);
        for (const key of keysOf(rule))
          this.#byKey.set(keyTextOf(key), { handler: handler as unknown as WebhookHandler, isReady });
      },
    };
  }

  /** The rules without a handler. */
  missing(rules: readonly WebhookRule[]): WebhookRule[] {
    return rules.filter((rule) => !this.#rules.has(rule));
  }

  /** `NotReady`: the caches that the handler reads are not whole yet. undefined: no controller of this process has one. */
  find(key: WebhookKey): WebhookHandler | 'NotReady' | undefined {
    const found = this.#byKey.get(keyTextOf(key));
    return found === undefined || found.isReady() ? found?.handler : 'NotReady';
  }

  /** Whether a controller that does not run in this process declares a webhook for such requests. */
  async isOff(key: WebhookKey): Promise<boolean> {
    return !this.#byKey.has(keyTextOf(key)) && (await this.#isKnown(key));
  }
}

/** The requests that one handler is about. */
export interface WebhookKey {
  readonly path: WebhookPath;
  readonly operation: string;
  /** Such as `apps/v1`. */
  readonly apiVersion: string;
  readonly plural: string;
}

/** Whether a rule is about such requests. */
export function isAbout(rule: WebhookRule, key: WebhookKey): boolean {
  return keysOf(rule).some((own) => keyTextOf(own) === keyTextOf(key));
}

function keysOf({ path, kind, operations }: WebhookRule): WebhookKey[] {
  return operations.map((operation) => ({ path, operation, apiVersion: apiVersionOf(kind), plural: kind.plural }));
}

function keyTextOf({ path, operation, apiVersion, plural }: WebhookKey): string {
  return `${path} ${operation} ${apiVersion} ${plural}`;
}
