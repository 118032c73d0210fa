import express, { type ErrorRequestHandler, type Express } from 'express';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import type { Verdict, WebhookPath, Webhooks } from '../../reconcile/webhooks.ts';
import { answerTo, type Review, reviewOf } from './review.ts';

export interface WebhookAppOptions {
  readonly webhooks: Webhooks;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'admissionReviews'>;
}

/** The API server takes objects of 3 MiB; an update brings the old one along. */
const MAX_BODY_BYTES = 7 * 1024 * 1024;
const PATHS: readonly WebhookPath[] = ['mutate', 'validate'];

/** `/mutate` and `/validate`: answers AdmissionReviews. What is none gets 400; what nobody handles is denied. */
export function webhookApp({ webhooks, logger, metrics }: WebhookAppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(express.json({ limit: MAX_BODY_BYTES, type: () => true }));
  for (const path of PATHS) {
    app.post(`/${path}`, ({ body }, response) => {
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
      response.json(answerTo(review, decide(path, review)));
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

  function decide(path: WebhookPath, review: Review): Verdict {
    const { operation, apiVersion, plural, request } = review;
    const handler = webhooks.find(path, operation, apiVersion, plural);
    if (handler === undefined) {
      metrics.admissionReviews.inc({ resource: '', operation: '', result: 'unsupported' });
      return { isAllowed: false, message: `unsupported: ${operation} of ${plural} in ${apiVersion}` };
    }
    const count = (result: string): void => metrics.admissionReviews.inc({ resource: plural, operation, result });
    const fields = { resource: plural, operation, namespace: request.namespace, name: request.object.metadata.name };
    try {
      const verdict = handler(request);
      if (!verdict.isAllowed) logger.info({ ...fields, message: verdict.message }, 'request denied');
      count(verdict.isAllowed ? 'allowed' : 'denied');
      return verdict;
    } catch (error) {
      count('error');
      logger.warn({ ...fields, err: error }, 'request not understood');
      // Not validated yet: the API server says what is wrong with it. A validated one is a fault of this program.
      if (path === 'mutate') return { isAllowed: true };
      throw error;
    }
  }
}

/** Of what reading the body throws; anything else is a fault of this program. */
function statusOf(error: unknown): number {
  const { status } = error as { readonly status?: unknown };
  return typeof status === 'number' ? status : 500;
}
