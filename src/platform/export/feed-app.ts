import express, { type Express, type Request, type Response } from 'express';
import { isDnsLabel } from '../../kinds/label-syntax.ts';
import type { Metrics } from '../../metrics.ts';
import { refuse } from '../../server/refuse.ts';
import type { ExportTable } from './export-table.ts';
import type { Access, FeedAccess, FeedScope } from './feed-access.ts';
import type { FeedLists } from './feed-lists.ts';
import type { FeedWatches, Watcher } from './feed-watches.ts';

export interface FeedAppOptions {
  readonly table: ExportTable;
  readonly access: Pick<FeedAccess, 'of'>;
  readonly watches: FeedWatches;
  readonly lists: FeedLists;
  readonly metrics: Pick<Metrics, 'exportRequests'>;
}

export const FEED_PATH = '/v1/exportservices';
const PARAMETERS = ['group', 'namespace', 'watch'];
/** The API server takes the same. */
const WATCH_VALUES = ['1', 'true', '0', 'false'];
const NDJSON = 'application/x-ndjson';

type Admitted = 'Balancer' | 'Allowed';

/** Why a request gets nothing. */
const REFUSALS: Readonly<Record<Exclude<Access, Admitted>, readonly [status: number, text: string]>> = {
  Unauthenticated: [401, 'a token of the cluster or of the group is needed: Authorization: Bearer …'],
  Forbidden: [403, 'this token may not get ExportServices there; with &namespace=… fewer rights are needed'],
  Busy: [429, 'too many unknown tokens come from there: try again later'],
  Unknown: [503, 'the API server does not say whether this token may read: try again later'],
};

/** `GET /v1/exportservices?group=…[&namespace=…][&watch=1]`: what balancers of a group take, from the caches. */
export function feedApp({ table, access, watches, lists, metrics }: FeedAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.get(FEED_PATH, async (request, response) => {
    response.once('close', () => metrics.exportRequests.inc({ code: String(response.statusCode) }));
    const scope = scopeOf(request, response);
    if (scope === undefined) return;
    const { authorization: header } = request.headers;
    const source = request.socket.remoteAddress ?? '';
    const found = await access.of({ header, source }, scope);
    if (!isAdmitted(found)) return refuse(response, ...REFUSALS[found]);
    // An empty answer would take all traffic away.
    if (!table.isCurrent()) return refuse(response, 503, 'the caches of this replica are not current: ask another one');
    if (response.closed) return;
    // Until the answers before it have ended, Node keeps all that is written to it, even when it is destroyed.
    if (response.socket === null) return refuse(response, 400, 'must not be pipelined behind another request');
    response.set('Cache-Control', 'private, no-cache').set('Vary', 'Authorization');
    const watching = { header, source, isWatching: true };
    const isAllowed = async (): Promise<boolean> => keepsWatch(await access.of(watching, scope));
    await answer(request, response, scope, { isAllowed, isBalancer: found === 'Balancer' });
  });
  app.all(FEED_PATH, (_request, response) =>
    refuse(response.set('Allow', 'GET, HEAD'), 405, 'only GET and HEAD are served'),
  );
  app.use((_request, response) => refuse(response, 404, `only GET ${FEED_PATH} is served`));
  return app;

  async function answer(request: Request, response: Response, scope: FeedScope, watcher: Watcher): Promise<void> {
    if (!isWatch(request)) await list(request, response, scope, watcher.isBalancer);
    else if (request.method === 'HEAD') response.type(NDJSON).end();
    else watch(response, scope, watcher);
  }

  function watch(response: Response, scope: FeedScope, watcher: Watcher): void {
    response.type(NDJSON);
    const close = watches.open(scope, response, watcher);
    if (close === undefined)
      refuse(response, 503, 'there are too many watches, or too much of them is unread: ask another replica');
    else response.once('close', close);
  }

  async function list(request: Request, response: Response, scope: FeedScope, isBalancer: boolean): Promise<void> {
    response.vary('Accept-Encoding');
    const { etag, bytes, isCompressible } = lists.of(scope);
    const isCompressed = isCompressible && request.acceptsEncodings('gzip', 'identity') === 'gzip';
    // A strong ETag stands for one sequence of bytes (RFC 9110, 8.8.1).
    const tag = isCompressed ? `W/${etag}` : etag;
    if (isKnown(request, etag)) {
      response.set('ETag', tag).status(304).end();
      return;
    }
    const body = isCompressed ? await lists.compressedOf(scope) : bytes;
    if (response.closed) return;
    if (!lists.hold(response, body, isBalancer)) {
      return refuse(response, 503, 'too much of the lists is unread: ask another replica');
    }
    response.set('ETag', tag).type('application/json');
    if (isCompressed) response.set('Content-Encoding', 'gzip');
    response.send(body);
  }
}

/** Answers the request itself when it is not understood. */
function scopeOf({ query }: Request, response: Response): FeedScope | undefined {
  const unknown = Object.keys(query).find((name) => !PARAMETERS.includes(name));
  const { group, namespace, watch } = query;
  if (unknown !== undefined) {
    refuse(response, 400, `${unknown}: unknown parameter, use ${PARAMETERS.join(', ')}`);
  } else if (group === undefined || group === '') {
    refuse(response, 400, 'group: is required, such as ?group=external');
  } else if (typeof group !== 'string') {
    refuse(response, 400, 'group: must be given once');
  } else if (namespace !== undefined && (typeof namespace !== 'string' || !isDnsLabel(namespace))) {
    // An empty list would take all traffic away.
    refuse(response, 400, 'namespace: must be given once, and must be the name of a namespace');
  } else if (watch !== undefined && !WATCH_VALUES.includes(String(watch))) {
    refuse(response, 400, `watch: must be one of ${WATCH_VALUES.join(', ')}, and given once`);
  } else {
    return { group, namespace };
  }
  return undefined;
}

/** `Cache-Control` of a request is about caches on the way: there are none. */
function isKnown({ headers }: Request, etag: string): boolean {
  const known = headers['if-none-match']?.split(',').map((one) => one.trim().replace(/^W\//, '')) ?? [];
  return known.includes(etag);
}

function isWatch({ query }: Request): boolean {
  return query.watch === '1' || query.watch === 'true';
}

function isAdmitted(access: Access): access is Admitted {
  return access === 'Balancer' || access === 'Allowed';
}

/** A watch goes on while nobody can say whether it may. */
function keepsWatch(access: Access): boolean {
  return isAdmitted(access) || access === 'Busy' || access === 'Unknown';
}
