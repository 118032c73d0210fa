import { parseAllDocuments } from 'yaml';
import { type ApiClient, ApiError, type KubeObject } from './api-client.ts';
import { poll } from './poll.ts';

const FIELD_MANAGER = 'control-plane-sample';
/** A definition that was applied a moment ago is served only when the API server has taken it up. */
const KIND_SERVED_WITHIN_MS = 10_000;

interface ApiResource {
  /** Plural, as in a path. */
  name: string;
  kind: string;
  namespaced: boolean;
}

/** Multi-document YAML (or JSON), one object, several, or a List of them, as a flat list in the same order. */
export function parseManifests(manifests: string | KubeObject | KubeObject[]): KubeObject[] {
  const documents = typeof manifests === 'string' ? parseYaml(manifests) : [manifests].flat();
  return documents.flatMap((document) => {
    if (document.kind === 'List') return parseManifests(document.items);
    if (typeof document.apiVersion !== 'string' || typeof document.kind !== 'string' || !document.metadata?.name) {
      throw new Error(`a manifest needs apiVersion, kind and metadata.name: ${JSON.stringify(document).slice(0, 200)}`);
    }
    return [document];
  });
}

function parseYaml(text: string): KubeObject[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error) throw error;
    return document.toJS() ?? []; // an empty document, as after a closing `---`, is none
  });
}

export function pathOfResource(object: KubeObject, resource: ApiResource): string {
  const { apiVersion, metadata } = object;
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const namespace = resource.namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
  return `${root}${namespace}/${resource.name}/${metadata.name}`;
}

/** Server-side apply, one object after the other; the answers in the same order. */
export async function applyManifests(
  client: ApiClient,
  manifests: string | KubeObject | KubeObject[],
): Promise<KubeObject[]> {
  const discovered = new Map<string, ApiResource[]>();
  const applied: KubeObject[] = [];
  for (const object of parseManifests(manifests)) {
    const resource = await findResource(client, object, discovered);
    applied.push(await client.applyObject(pathOfResource(object, resource), object, FIELD_MANAGER));
  }
  return applied;
}

function findResource(
  client: ApiClient,
  { apiVersion, kind }: KubeObject,
  discovered: Map<string, ApiResource[]>,
): Promise<ApiResource> {
  const find = () =>
    discovered.get(apiVersion)?.find((resource) => resource.kind === kind && !/\//.test(resource.name));
  return poll(
    async () => {
      if (find() === undefined) discovered.set(apiVersion, await discover(client, apiVersion));
      return find();
    },
    { what: `the API server to serve ${apiVersion} ${kind}`, timeoutMs: KIND_SERVED_WITHIN_MS, intervalMs: 100 },
  );
}

async function discover(client: ApiClient, apiVersion: string): Promise<ApiResource[]> {
  try {
    return (await client.get(`${apiVersion.includes('/') ? '/apis' : '/api'}/${apiVersion}`)).resources;
  } catch (error) {
    if (error instanceof ApiError && error.statusCode === 404) return [];
    throw error;
  }
}
