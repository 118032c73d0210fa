import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { isDnsLabel } from '../../../kinds/label-syntax.ts';
import { isWatchAlive } from '../../../kube/watch/informer-types.ts';
import type { Logger } from '../../../logger.ts';
import type { Metrics } from '../../../metrics.ts';
import { refuse } from '../../../server/refuse.ts';
import type { CatalogAccess, CatalogReader, CatalogRefusal, CatalogScope } from './catalog-access.ts';

/** What a request wants, as its path says it; or why it says nothing. */
export type Wanted<T> = { readonly wanted: T } | { readonly fault: string };

/** A request of somebody who may read. */
export interface AdmittedRequest<T> {
  readonly request: Request<PathParameters>;
  readonly response: Response;
  readonly namespace: string;
  readonly reader: CatalogReader;
  readonly wanted: T;
}

export interface ReadAppOptions<T> {
  /** All that it serves is below this path: `/resolve`. */
  readonly path: string;
  /** Each below `path`, as express has them; `:namespace` is a namespace. */
  readonly routes: readonly string[];
  /** How the path looks, for people. */
  readonly form: string;
  readonly kind: CatalogScope['kind'];
  /** Caches that the answers come from. */
  readonly caches: readonly Parameters<typeof isWatchAlive>[0][];
  readonly access: Pick<CatalogAccess, 'of'>;
  readonly metrics: Pick<Metrics, 'catalogRequests'>;
  readonly logger: Logger;
  readonly wantedIn: (request: Request<PathParameters>) => Wanted<T>;
  /** Rejects when something cannot be read now. */
  readonly answer: (admitted: AdmittedRequest<T>) => Promise<void> | void;
}

export type PathParameters = Readonly<Record<string, string>>;

/** Why a request gets nothing. */
const REFUSALS: Readonly<Record<CatalogRefusal, readonly [status: number, text: string]>> = {
  Unauthenticated: [401, 'a token of the cluster or of the application is needed: Authorization: Bearer …'],
  Forbidden: [403, 'this token may not read that'],
  Busy: [429, 'too many unknown tokens come from there: try again later'],
  Unknown: [503, 'the API server does not say whether this token may read: try again later'],
};

/** What answers requests to read for whoever may, and refuses all others, each with a sentence. */
export function readApp<T>(options: ReadAppOptions<T>): Express {
  const { path, routes, form, metrics, logger, wantedIn, answer } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((_request, response, next) => {
    response.once('close', () => metrics.catalogRequests.inc({ path, code: String(response.statusCode) }));
    next();
  });
  for (const route of routes) {
    app.get(`${path}${route}`, async (request: Request<PathParameters>, response: Response) => {
      const { namespace = '' } = request.params;
      if (!isDnsLabel(namespace)) return refuse(response, 400, `the path must have the form ${form}`);
      const found = wantedIn(request);
      if ('fault' in found) return refuse(response, 400, found.fault);
      const reader = await admit(request, response, namespace, options);
      if (reader !== undefined) await answer({ request, response, namespace, reader, wanted: found.wanted });
    });
  }
  app.use((request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (isRead) refuse(response, 404, `the path must have the form ${form}`);
    else refuse(response.set('Allow', 'GET, HEAD'), 405, 'only GET and HEAD are served');
  });
  // Express knows a handler of errors by its four parameters.
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
    // Such as a path with `%` in front of something else than two hex digits.
    const isBad = error instanceof URIError || (error as { readonly status?: number }).status === 400;
    if (isBad) return refuse(response, 400, `the path must have the form ${form}`);
    logger.warn({ err: error, path }, 'A request got no answer');
    refuse(response, 503, 'that cannot be read now: try again later');
  });
  return app;
}

/** Who reads. Undefined: the request has its answer. */
async function admit(
  request: Request<PathParameters>,
  response: Response,
  namespace: string,
  { access, kind, caches }: Pick<ReadAppOptions<unknown>, 'access' | 'kind' | 'caches'>,
): Promise<CatalogReader | undefined> {
  const scope = { namespace, kind };
  const reader = await access.of(request.headers.authorization, request.socket.remoteAddress ?? '', scope);
  if (response.closed) return undefined;
  if (typeof reader === 'string') return refused(response, ...REFUSALS[reader]);
  // Until the answers before it have ended, Node keeps all that is written to it, even when it is destroyed.
  if (response.socket === null) return refused(response, 400, 'must not be pipelined behind another request');
  // Without the watch nobody knows which objects have gone.
  if (!caches.every(isWatchAlive)) {
    return refused(response, 503, 'the caches of this replica are not current: ask another one');
  }
  response.set('Cache-Control', 'private, no-cache').set('Vary', 'Authorization');
  return reader;
}

function refused(response: Response, status: number, text: string): undefined {
  refuse(response, status, text);
  return undefined;
}
