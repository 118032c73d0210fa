import { Agent, request } from 'undici';
import type { ApiClient, KubeObject } from './api-client.ts';
import { ApiError } from './api-client.ts';
import { poll } from './poll.ts';

/** A frozen process accepts connections and does not answer. */
const PROBE_TIMEOUT_MS = 2_000;
const DEFAULTS_WITHIN_MS = 60_000;

/** Asks `/readyz`; throws while nothing listens. */
export async function isReady(client: ApiClient): Promise<boolean> {
  await client.request('GET', '/readyz', { timeoutMs: PROBE_TIMEOUT_MS });
  return true;
}

export async function isHealthy(client: ApiClient): Promise<boolean> {
  await client.request('GET', '/healthz', { timeoutMs: PROBE_TIMEOUT_MS });
  return true;
}

export async function isEtcdReady(socketPath: string): Promise<boolean> {
  const dispatcher = new Agent({ connect: { socketPath } });
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const response = await request('http://etcd/readyz', { dispatcher, signal });
    await response.body.dump();
    return response.statusCode === 200;
  } finally {
    await dispatcher.destroy();
  }
}

/** Resolves when a Pod can be created in the namespace `default`: the controller manager makes what it needs. */
export async function waitForNamespaceDefaults(admin: ApiClient): Promise<void> {
  for (const object of ['serviceaccounts/default', 'configmaps/kube-root-ca.crt']) {
    await poll(() => getIfFound(admin, `/api/v1/namespaces/default/${object}`), {
      what: `kube-controller-manager to create ${object} in the namespace default`,
      timeoutMs: DEFAULTS_WITHIN_MS,
    });
  }
}

async function getIfFound(admin: ApiClient, path: string): Promise<KubeObject | undefined> {
  try {
    return await admin.get(path);
  } catch (error) {
    if (error instanceof ApiError && error.statusCode === 404) return undefined;
    throw error;
  }
}
