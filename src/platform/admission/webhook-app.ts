import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { canonicalAddress } from '../../ip-address.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import type { Verdict, WebhookHandler, WebhookKey, WebhookPath, Webhooks } from '../../reconcile/webhooks.ts';
import { ReportLimit } from '../../report-limit.ts';
import { shortened } from '../../shortened.ts';
import { BodyBudget, MAX_BODY_BYTES } from './body-budget.ts';
import { answerTo, type Review, reviewOf } from './review.ts';

export interface WebhookAppOptions {
  readonly webhooks: Pick<Webhooks, 'find' | 'isOff'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'admissionReviews'>;
}

const PATHS: readonly WebhookPath[] = ['mutate', 'validate'];
/** An API server repeats the request then, while the timeout of the webhook (5 s) lasts; then `failurePolicy` decides. */
const RETRY_AFTER_SECONDS = '1';
/** Rate of the log lines of each message: a stranger who calls chooses the texts, and how often they come. */
const LINES = { burst: 100, refillMs: 1_000 };
const MAX_TEXT_LENGTH = 1_024;

/**
 * `/mutate` and `/validate`: answers AdmissionReviews. What is none gets 400; what nobody handles is denied, unless a
 * controller that is off would: that is allowed with a warning; what has no
 * room among the bodies that are being read gets 503, as does what needs caches that are not whole yet.
 */
export function webhookApp({ webhooks, clock, logger, metrics }: WebhookAppOptions): Express {
  const budget = new BodyBudget();
  const limits = { denied: new ReportLimit(clock.now(), LINES), failed: new ReportLimit(clock.now(), LINES) };

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const takeRoom: RequestHandler = (request, response, next) => {
    const release = budget.take(canonicalAddress(request.socket.remoteAddress ?? ''), bodyBytesOf(request));
    if (release !== undefined) {
      response.once('close', release);
      next();
      return;
    }
    refuseBusy(response, { plural: '', operation: '' }, 'too many bodies are read\n');
  };
  app.use(takeRoom);
  // Compressed bodies are refused: they would have another size than they say.
  app.use(express.json({ limit: MAX_BODY_BYTES, type: () => true, inflate: false }));
  for (const path of PATHS) {
    app.post(`/${path}`, async ({ body }, response) => {
      let review: Review;
      try {
        review = reviewOf(body);
      } catch (error) {
        metrics.admissionReviews.inc({ resource: '', operation: '', result: 'invalid' });
        response
          .status(400)
          .type('text/plain')
          .send(`${messageOf(error)}\n`);
        return;
      }
      const key = { path, operation: review.operation, apiVersion: review.apiVersion, plural: review.plural };
      const handler = webhooks.find(key);
      if (handler === 'NotReady') {
        refuseBusy(response, review, 'the caches of this controller are not whole yet\n');
        return;
      }
      response.json(answerTo(review, handler ? decide(path, review, handler) : await unhandled(key, review)));
    });
  }
  const refuse: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
    const status = statusOf(error);
    if (status < 500) metrics.admissionReviews.inc({ resource: '', operation: '', result: 'invalid' });
    response
      .status(status)
      .type('text/plain')
      .send(`${messageOf(error)}\n`);
  };
  app.use(refuse);
  return app;

  function refuseBusy(
    response: Response,
    { plural, operation }: Pick<Review, 'plural' | 'operation'>,
    why: string,
  ): void {
    metrics.admissionReviews.inc({ resource: plural, operation, result: 'busy' });
    response.status(503).set('Retry-After', RETRY_AFTER_SECONDS).type('text/plain').send(why);
  }

  /** A controller that is off stops nobody: the manifests of another set of controllers may still be installed. */
  async function unhandled(key: WebhookKey, { operation, apiVersion, plural }: Review): Promise<Verdict> {
    if (await webhooks.isOff(key)) {
      metrics.admissionReviews.inc({ resource: plural, operation, result: 'off' });
      return {
        isAllowed: true,
        warnings: [`${plural} were not checked: their controller is not in CONTROLLERS of module-platform`],
      };
    }
    metrics.admissionReviews.inc({ resource: '', operation: '', result: 'unsupported' });
    return { isAllowed: false, message: `unsupported: ${operation} of ${plural} in ${apiVersion}` };
  }

  function decide(path: WebhookPath, review: Review, handler: WebhookHandler): Verdict {
    const { operation, plural, request } = review;
    const count = (result: string): void => metrics.admissionReviews.inc({ resource: plural, operation, result });
    const fields = {
      resource: plural,
      operation,
      namespace: loggable(request.namespace),
      name: loggable(request.object.metadata.name),
    };
    try {
      const verdict = handler(request);
      if (!verdict.isAllowed) logDenied(fields, verdict.message);
      count(verdict.isAllowed ? 'allowed' : 'denied');
      return verdict;
    } catch (error) {
      count('error');
      const admitted = limits.failed.admit(clock.now());
      if (admitted) logger.warn({ ...fields, err: error, ...admitted }, 'request not understood');
      // Not validated yet: the API server says what is wrong with it. A validated one is a fault of this program.
      if (path === 'mutate') return { isAllowed: true };
      throw error;
    }
  }

  function logDenied(fields: object, text: string): void {
    const admitted = limits.denied.admit(clock.now());
    if (admitted === undefined) return;
    logger.info({ ...fields, message: loggable(text), ...admitted }, 'request denied');
  }
}

/** A caller that is not the API server may send anything in the place of a text. */
function loggable(text: unknown): string | undefined {
  return typeof text === 'string' ? shortened(text, MAX_TEXT_LENGTH) : undefined;
}

/** Upper bound of the bytes that a request keeps. A body without a length may be of any size. */
function bodyBytesOf({ headers }: Request): number {
  if (headers['transfer-encoding'] !== undefined) return MAX_BODY_BYTES;
  return Math.min(Number(headers['content-length'] ?? 0), MAX_BODY_BYTES);
}

/** HTTP status of an error that reading the body throws; anything else is a fault of this program. */
function statusOf(error: unknown): number {
  const { status } = error as { readonly status?: unknown };
  return typeof status === 'number' ? status : 500;
}
