import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

/**
 * undici's pool by the files that it consists of. The package as a whole brings fetch, WebSockets, caches and mocks with
 * it: 9 MiB of memory in each process. The version of undici is pinned, and the paths belong to it.
 */
export const Pool = require('undici/lib/dispatcher/pool.js') as typeof Undici.Pool;
export type Pool = Undici.Pool;

/** Makes the function by which a pool connects. */
export const buildConnector = require('undici/lib/core/connect.js') as typeof Undici.buildConnector;
export type Connector = Undici.buildConnector.connector;

const request = require('undici/lib/api/api-request.js') as Undici.Dispatcher['request'];

/** Resolves when the headers have come. */
export function requestOn(
  pool: Pool,
  options: Undici.Dispatcher.RequestOptions,
): Promise<Undici.Dispatcher.ResponseData> {
  return request.call(pool, options) as Promise<Undici.Dispatcher.ResponseData>;
}
