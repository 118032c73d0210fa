import type { CatalogPod } from '../catalog-pod.ts';
import type { CachedModule } from '../module/cached-module.ts';
import { DEFAULT_CHAIN, DEFAULT_TIMEOUT_MS, type PlatformConfigSpec } from '../platform-config/platform-config.ts';

/** An address at which something listens. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
  /** How long a client waits for an answer, ms. */
  readonly timeoutMs: number;
}

/** What a name stands for, and where that comes from. */
export interface Resolved {
  readonly name: string;
  readonly source: 'Module' | 'UpChain' | 'Default';
  /** Sorted by host. Empty: no Pod of the Module serves. */
  readonly endpoints: readonly Endpoint[];
}

/** A name of the form `{app}.{module}.{port}`. */
export interface EndpointName {
  readonly app: string;
  readonly module: string;
  /** Name of a port. */
  readonly port: string;
}

export interface ResolveInput {
  readonly name: string;
  /** The Module of that app and module; undefined: there is none. */
  readonly module: Pick<CachedModule, 'spec'> | undefined;
  readonly pods: readonly Pick<CatalogPod, 'podIP' | 'problem'>[];
  readonly config: Pick<PlatformConfigSpec, 'upChain'> | undefined;
}

const NAME = /^([A-Za-z][0-9A-Za-z]*)\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)$/;

/** Undefined: no Module can have it, but `upChain` may. */
export function endpointNameOf(name: string): EndpointName | undefined {
  const [, app, module, port] = NAME.exec(name) ?? [];
  return app === undefined || module === undefined || port === undefined ? undefined : { app, module, port };
}

/**
 * The Pods of a Module that are Ready, where there is one with the port: also if none is. Else what `upChain` has for the
 * name, else its default. Undefined: nothing has the name.
 */
export function resolve({ name, module, pods, config }: ResolveInput): Resolved | undefined {
  const wanted = endpointNameOf(name);
  const port = module?.spec.ports?.find((one) => one.name === wanted?.port);
  if (port !== undefined) {
    const hosts = pods.filter(({ problem }) => problem === undefined).flatMap(({ podIP }) => podIP ?? []);
    const endpoints = [...new Set(hosts)].sort().map(
      (host): Endpoint => ({
        host,
        port: port.port,
        protocol: port.protocol ?? 'TCP',
        timeoutMs: DEFAULT_TIMEOUT_MS,
      }),
    );
    return { name, source: 'Module', endpoints };
  }
  // A name may be that of a property that every object has.
  const chains = new Map(Object.entries(config?.upChain ?? {}));
  const own = chains.get(name);
  const found = own ?? chains.get(DEFAULT_CHAIN);
  if (found === undefined) return undefined;
  const endpoints = found.map(
    ({ host, port: number, protocol = 'TCP', timeoutMs = DEFAULT_TIMEOUT_MS }): Endpoint => ({
      host,
      port: number,
      protocol,
      timeoutMs,
    }),
  );
  return { name, source: own === undefined ? 'Default' : 'UpChain', endpoints };
}
