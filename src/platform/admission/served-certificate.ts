import type { Clock } from '../../clock.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import type { TlsPair, TlsSource } from '../../server/tls-source.ts';
import { type Serving, servingOf } from './certificates.ts';
import type { CachedSecret } from './webhook-objects.ts';

export interface ServedCertificateOptions {
  readonly secrets: Pick<Informer<CachedSecret>, 'addHandler'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'certificateReloads' | 'webhookCertificateEnd'>;
}

const SERVER = 'webhooks';

/**
 * The certificate of the webhook server as the Secret has it. A pair that cannot be used is reported, and the former
 * one stays; so it does when the Secret goes.
 */
export class ServedCertificate implements TlsSource {
  readonly #options: ServedCertificateOptions;
  readonly #listeners: ((pair: TlsPair) => void)[] = [];
  readonly #first = Promise.withResolvers<void>();
  #serving: Serving | undefined;

  constructor(options: ServedCertificateOptions) {
    this.#options = options;
    for (const result of ['ok', 'error']) options.metrics.certificateReloads.inc({ server: SERVER, result }, 0);
    options.secrets.addHandler({
      onAdd: (secret) => this.#take(secret),
      onUpdate: (_old, secret) => this.#take(secret),
      onDelete: () => {},
    });
  }

  /** Resolves when there is one. */
  whenThere(): Promise<void> {
    return this.#first.promise;
  }

  /** Throws before there is one. */
  current(): TlsPair {
    if (this.#serving === undefined) throw new Error('the webhook server has no certificate yet');
    return pairOf(this.#serving);
  }

  onChange(listener: (pair: TlsPair) => void): void {
    this.#listeners.push(listener);
  }

  /** Whether the API server can accept it now. */
  isValid(): boolean {
    return this.#serving !== undefined && this.#serving.certificate.notAfter > this.#options.clock.wallTime().getTime();
  }

  #take({ cert, key }: CachedSecret): void {
    const { logger, metrics } = this.#options;
    if (cert === '' || (cert === this.#serving?.certificate.pem && key === this.#serving.key)) return;
    const serving = servingOf(cert, key);
    if (serving === undefined) {
      metrics.certificateReloads.inc({ server: SERVER, result: 'error' });
      logger.error({ server: SERVER }, 'certificate cannot be used: the previous one stays in use');
      return;
    }
    this.#serving = serving;
    metrics.certificateReloads.inc({ server: SERVER, result: 'ok' });
    metrics.webhookCertificateEnd.set(serving.certificate.notAfter / 1000);
    logger.info({ server: SERVER, until: new Date(serving.certificate.notAfter) }, 'certificate taken');
    this.#first.resolve();
    for (const listener of this.#listeners) listener(pairOf(serving));
  }
}

function pairOf({ certificate, key }: Serving): TlsPair {
  return { cert: certificate.pem, key };
}
