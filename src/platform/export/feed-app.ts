import { createHash } from 'node:crypto';
import express, { type Express, type Request, type Response } from 'express';
import type { Metrics } from '../../metrics.ts';
import type { ExportTable } from './export-table.ts';
import { type Access, type FeedAccess, type FeedScope, scopeKey } from './feed-access.ts';
import { entriesIn, type FeedWatches, type Watcher } from './feed-watches.ts';

export interface FeedAppOptions {
  readonly table: ExportTable;
  readonly access: Pick<FeedAccess, 'of'>;
  readonly watches: FeedWatches;
  readonly metrics: Pick<Metrics, 'exportRequests'>;
}

const PATH = '/v1/exportservices';
const PARAMETERS = ['group', 'namespace', 'watch'];
const RETRY_AFTER_SECONDS = '1';

type Admitted = 'Balancer' | 'Allowed';

/** Why a request gets nothing. */
const REFUSALS: Readonly<Record<Exclude<Access, Admitted>, readonly [status: number, text: string]>> = {
  Unauthenticated: [401, 'a token of the cluster or of the group is needed: Authorization: Bearer …'],
  Forbidden: [403, 'this token may not get ExportServices there; with &namespace=… fewer rights are needed'],
  Busy: [429, 'too many unknown tokens come from there: try again later'],
  Unknown: [503, 'the API server does not say whether this token may read: try again later'],
};

interface Body {
  readonly version: number;
  readonly text: string;
  readonly etag: string;
}

/** Bodies that are kept: whoever asks for many groups that there are not costs no memory. */
const MAX_BODIES = 100;

/** `GET /v1/exportservices?group=…[&namespace=…][&watch=1]`: what balancers of a group take, from the caches. */
export function feedApp({ table, access, watches, metrics }: FeedAppOptions): Express {
  const bodies = new Map<string, Body>();
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.get(PATH, async (request, response) => {
    response.once('close', () => metrics.exportRequests.inc({ code: String(response.statusCode) }));
    const scope = scopeOf(request, response);
    if (scope === undefined) return;
    const { authorization: header } = request.headers;
    const source = request.socket.remoteAddress ?? '';
    const found = await access.of({ header, source }, scope);
    if (!isAdmitted(found)) return refuse(response, ...REFUSALS[found]);
    // An empty answer would take all traffic away.
    if (!table.isCurrent()) return refuse(response, 503, 'the caches of this replica are not current: ask another one');
    response.set('Cache-Control', 'private, no-cache').set('Vary', 'Authorization');
    if (isWatch(request)) {
      const isAllowed = async (): Promise<boolean> => keepsWatch(await access.of({ header, source }, scope));
      watch(response, scope, { isAllowed, isBalancer: found === 'Balancer' });
      return;
    }
    const { etag, text } = bodyOf(scope);
    response.set('ETag', etag);
    if (isKnown(request, etag)) response.status(304).end();
    else response.type('application/json').send(text);
  });
  app.use((_request, response) => refuse(response, 404, `only GET ${PATH} is served`));
  return app;

  function watch(response: Response, scope: FeedScope, watcher: Watcher): void {
    if (response.closed) return;
    if (response.socket === null) {
      // Until the answers before it have ended, Node keeps all that is written to it, even when it is destroyed.
      refuse(response, 400, 'watch: must not be pipelined behind another request');
      return;
    }
    response.type('application/x-ndjson');
    const close = watches.open(scope, response, watcher);
    if (close === undefined)
      refuse(response, 503, 'there are too many watches, or too much of them is unread: ask another replica');
    else response.once('close', close);
  }

  function bodyOf(scope: FeedScope): Body {
    const name = scopeKey(scope);
    const known = bodies.get(name);
    if (known?.version === table.version) return known;
    const text = `[${entriesIn(table, scope)
      .map(({ view }) => view.json)
      .join(',')}]`;
    const etag = `"${createHash('sha256').update(text).digest('base64url')}"`;
    const body = { version: table.version, text, etag };
    if (bodies.size >= MAX_BODIES) bodies.clear();
    bodies.set(name, body);
    return body;
  }
}

/** Answers the request itself when it is not understood. */
function scopeOf({ query }: Request, response: Response): FeedScope | undefined {
  const unknown = Object.keys(query).find((name) => !PARAMETERS.includes(name));
  const { group, namespace } = query;
  if (unknown !== undefined) {
    refuse(response, 400, `${unknown}: unknown parameter, use ${PARAMETERS.join(', ')}`);
  } else if (typeof group !== 'string' || group === '') {
    refuse(response, 400, 'group: is required, such as ?group=external');
  } else if (namespace !== undefined && (typeof namespace !== 'string' || namespace === '')) {
    refuse(response, 400, 'namespace: must be given once, and must not be empty');
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

function refuse(response: Response, status: number, text: string): void {
  if (status === 401) response.set('WWW-Authenticate', 'Bearer');
  if (status === 429 || status === 503) response.set('Retry-After', RETRY_AFTER_SECONDS);
  response.status(status).type('text/plain').send(`${text}\n`);
}
