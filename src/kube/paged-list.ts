import type { KubeObject } from './objects.ts';
import type { RestLane, RestRequest } from './rest-lane.ts';

const PAGE_SIZE = 500;
const PAGE_TIMEOUT_MS = 60_000;

interface ListPage {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items?: readonly KubeObject[] | null;
}

export interface PagedListOptions {
  readonly lane: RestLane;
  readonly path: string;
  readonly query: NonNullable<RestRequest['query']>;
  readonly signal: AbortSignal;
  readonly onItem: (item: KubeObject) => void;
}

/**
 * Resolves with the resource version to watch from. All pages show the state of that one version; rejects with 410
 * when the server forgets it on the way.
 */
export async function listPages(options: PagedListOptions): Promise<string> {
  const { lane, path, query, signal, onItem } = options;
  let resourceVersion: string | undefined;
  let next: string | undefined;
  do {
    const page: ListPage = await lane.request<ListPage>({
      method: 'GET',
      path,
      query: { ...query, limit: PAGE_SIZE, continue: next },
      signal,
      timeoutMs: PAGE_TIMEOUT_MS,
    });
    resourceVersion ??= page.metadata.resourceVersion;
    for (const item of page.items ?? []) onItem(item);
    next = page.metadata.continue || undefined;
  } while (next !== undefined);
  return resourceVersion;
}
