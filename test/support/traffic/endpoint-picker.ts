import type { ApiClient, KubeObject, Watch } from '../../../samples/control-plane/api-client.ts';

interface Endpoint {
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean; readonly terminating?: boolean };
}

/** Follows the EndpointSlices of a Service, and picks one of its ready endpoints at random, as kube-proxy does. */
export class EndpointPicker {
  /** Addresses of the endpoints that are ready and not terminating. */
  ready: readonly string[] = [];
  readonly #slices = new Map<string, readonly string[]>();
  readonly #watch: Watch;

  private constructor(watch: Watch) {
    this.#watch = watch;
  }

  /** `onChange` gets the addresses after each change. */
  static async start(
    admin: ApiClient,
    service: string,
    onChange: (ready: readonly string[]) => void,
  ): Promise<EndpointPicker> {
    const query = encodeURIComponent(`kubernetes.io/service-name=${service}`);
    const path = `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=${query}`;
    const early: { type: string; object: KubeObject }[] = [];
    let picker: EndpointPicker | undefined;
    const watch = await admin.watch(path, (event) => {
      if (picker === undefined) early.push(event);
      else {
        picker.#take(event);
        onChange(picker.ready);
      }
    });
    picker = new EndpointPicker(watch);
    for (const event of early) picker.#take(event);
    return picker;
  }

  /** undefined: no endpoint is ready. */
  pick(): string | undefined {
    return this.ready[Math.floor(Math.random() * this.ready.length)];
  }

  stop(): void {
    this.#watch.stop();
  }

  #take({ type, object }: { readonly type: string; readonly object: KubeObject }): void {
    const { name } = object.metadata;
    if (type === 'DELETED') this.#slices.delete(name);
    else this.#slices.set(name, readyIn(object.endpoints ?? []));
    this.ready = [...new Set([...this.#slices.values()].flat())];
  }
}

function readyIn(endpoints: readonly Endpoint[]): string[] {
  return endpoints
    .filter(({ conditions }) => conditions?.ready === true && conditions.terminating !== true)
    .flatMap(({ addresses }) => addresses);
}
