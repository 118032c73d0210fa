import { ControllerError } from '../errors.ts';
import type { Patch } from './client.ts';
import type { KubeObject } from './objects.ts';
import type { RestLane, RestRequest } from './transport/rest-lane.ts';

export type RequestLane = Pick<RestLane, 'request'>;

/** What a call may say besides its object. */
export type CallOptions = Pick<RestRequest, 'permit' | 'timeoutMs' | 'isOnce' | 'ignoresAnswer'>;

const FIELD_MANAGER = { fieldManager: 'module-controller' };
const PAGE_SIZE = 500;
/** A Pod may have 1.5 MiB. */
export const POD_PAGE_SIZE = 50;

/** One part of a path. A name comes from outside; `.` and `..` would be resolved away and hit another object. */
export function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') throw new RangeError(`not an object name: "${name}"`);
  return encodeURIComponent(name);
}

export function get<T>(lane: RequestLane, path: string, options: CallOptions = {}): Promise<T> {
  return lane.request<T>({ method: 'GET', path, ...options });
}

interface ListPage<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  /** Go writes null for an empty one. */
  readonly items?: readonly T[] | null;
}

export interface ListOptions<T> {
  readonly query?: RestRequest['query'];
  readonly signal?: AbortSignal;
  /** Timeout of each page. Default: that of the lane. */
  readonly timeoutMs?: number;
  /** Number of objects in a page, for kinds whose objects may be large: a page is in memory as a whole. Default 500. */
  readonly pageSize?: number | undefined;
  readonly onItem: (item: T) => void;
}

/**
 * Lists a collection page by page. Resolves with the resource version that all pages show, to watch from; rejects with
 * 410 when the server forgets that version on the way.
 */
export async function listPages<T>(
  lane: RequestLane,
  path: string,
  { query, onItem, pageSize = PAGE_SIZE, ...options }: ListOptions<T>,
): Promise<string> {
  let resourceVersion: string | undefined;
  let next: string | undefined;
  do {
    const paged = { ...query, limit: pageSize, continue: next };
    const page: ListPage<T> = await lane.request<ListPage<T>>({ method: 'GET', path, query: paged, ...options });
    if (page.items === undefined) throw new ControllerError('Kube.RequestFailed', `${path}: the answer is not a list`);
    resourceVersion ??= page.metadata.resourceVersion;
    for (const item of page.items ?? []) onItem(item);
    next = page.metadata.continue || undefined;
  } while (next !== undefined);
  return resourceVersion;
}

/** All objects of a collection that the query selects, as they were at one moment. */
export async function listAll<T>(lane: RequestLane, path: string, query: RestRequest['query']): Promise<T[]> {
  const items: T[] = [];
  await listPages<T>(lane, path, { query, onItem: (item) => items.push(item) });
  return items;
}

export function create<T extends KubeObject>(
  lane: RequestLane,
  path: string,
  body: T,
  options: CallOptions = {},
): Promise<T> {
  return lane.request<T>({ method: 'POST', path, query: FIELD_MANAGER, body, ...options });
}

export function patch<T>(
  lane: RequestLane,
  path: string,
  { body, contentType, ...options }: CallOptions & { readonly body: Patch; readonly contentType: string },
): Promise<T> {
  return lane.request<T>({ method: 'PATCH', path, query: FIELD_MANAGER, body, contentType, ...options });
}

/** `deleteOptions`: the fields of v1.DeleteOptions. */
export async function remove(
  lane: RequestLane,
  path: string,
  deleteOptions: Record<string, unknown>,
  options: CallOptions = {},
): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...deleteOptions };
  await lane.request({ method: 'DELETE', path, body, ignoresAnswer: true, ...options });
}
