import type { ApiClient, KubeObject } from '../control-plane/api-client.ts';
import { Mirror } from '../control-plane/mirror.ts';

/** The Nodes on which a Service has an endpoint that is ready, as a client that follows its EndpointSlices sees them. */
export class ReadyEndpoints {
  readonly #slices: Mirror<readonly string[]>;

  constructor(client: ApiClient, { service, namespace = 'default' }: { service: string; namespace?: string }) {
    const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
    this.#slices = new Mirror({
      client,
      path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=${selector}`,
      viewOf: readyNodesOf,
      onChange: () => {},
    });
  }

  nodes(): ReadonlySet<string> {
    return new Set(this.#slices.rows().flat());
  }

  start(): Promise<void> {
    return this.#slices.start();
  }

  stop(): Promise<void> {
    return this.#slices.stop();
  }
}

/** One that does not say whether it is ready counts as ready, as the API has it. */
function readyNodesOf({ endpoints }: KubeObject): string[] {
  const all: KubeObject[] = endpoints ?? [];
  return all.filter(({ conditions }) => conditions?.ready !== false).map(({ nodeName }) => nodeName ?? '');
}
