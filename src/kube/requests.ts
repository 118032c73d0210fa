import { ControllerError } from '../errors.ts';
import type { Patch } from './client.ts';
import type { KubeObject } from './objects.ts';
import type { RestLane, RestRequest } from './rest-lane.ts';

export type RequestLane = Pick<RestLane, 'request'>;

/** What a call may say besides its object. */
export type CallOptions = Pick<RestRequest, 'permit' | 'timeoutMs' | 'isOnce'>;

export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';

const FIELD_MANAGER = { fieldManager: 'module-controller' };
const PAGE_SIZE = 500;

/** One part of a path. A name comes from outside; `.` and `..` would be resolved away and hit another object. */
export function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') throw new RangeError(`not an object name: "${name}"`);
  return encodeURIComponent(name);
}

export function get<T>(lane: RequestLane, path: string, options: CallOptions = {}): Promise<T> {
  return lane.request<T>({ method: 'GET', path, ...options });
}

/** All pages of one list; they are of one moment. */
export async function listAll<T>(lane: RequestLane, path: string, labelSelector: string): Promise<T[]> {
  const items: T[] = [];
  let next: string | undefined;
  do {
    const query = { labelSelector, limit: String(PAGE_SIZE), ...(next ? { continue: next } : {}) };
    const page = await lane.request<{ metadata?: { continue?: string }; items?: T[] }>({ method: 'GET', path, query });
    if (page.items === undefined) throw new ControllerError('Kube.RequestFailed', `${path}: the answer is no list`);
    items.push(...page.items);
    next = page.metadata?.continue;
  } while (next);
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
  await lane.request({ method: 'DELETE', path, body, ...options });
}
