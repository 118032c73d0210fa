import type { Clock } from '../../clock.ts';
import { ControllerError } from '../../errors.ts';
import type { ResourceClient } from '../../kube/resource.ts';
import type { Permit } from '../../kube/transport/rest-lane.ts';
import { type Informer, objectKey } from '../../kube/watch/informer-types.ts';
import type { Logger } from '../../logger.ts';
import type { Result } from '../../reconcile/reconciler.ts';
import { type CertificateState, nextStep } from './certificate-plan.ts';
import { authorityOf, type CertificateFacts, certificatesOf, servingOf } from './certificates.ts';
import { type IssuedPair, issueServing, makeAuthority } from './issue-certificates.ts';
import {
  type CachedConfiguration,
  type CachedSecret,
  type ConfigurationObject,
  KEY,
  SECRET_NAME,
  type SecretObject,
} from './webhook-objects.ts';

/** A kind of webhook configuration, and where it is written. */
export interface ConfigurationStore {
  readonly informer: Pick<Informer<CachedConfiguration>, 'list'>;
  readonly client: Pick<ResourceClient<ConfigurationObject>, 'strategicPatch'>;
}

export interface CertificateControllerOptions {
  readonly namespace: string;
  /** Under which the API server reaches the webhook server. */
  readonly hosts: readonly string[];
  readonly secrets: Pick<Informer<CachedSecret>, 'get'>;
  readonly secretClient: Pick<ResourceClient<SecretObject>, 'mergePatch'>;
  readonly configurations: readonly ConfigurationStore[];
  /** Asked at the last moment before a write. */
  readonly permit: Permit;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A timer that fires late, or a clock that is put forward, costs no more than this. */
const LOOKS_AGAIN_MS = 12 * 60 * 60_000;

/**
 * Keeps the CA and the certificate of the webhook server in a Secret, and the CA in the webhook configurations. Each
 * reconcile takes one step (`nextStep`); its write brings the next one.
 */
export class CertificateController {
  readonly #options: CertificateControllerOptions;

  constructor(options: CertificateControllerOptions) {
    this.#options = options;
  }

  /** `key`: any; there is one Secret. */
  async reconcile(): Promise<Result | undefined> {
    const { namespace, secrets, hosts, logger } = this.#options;
    const secret = secrets.get(objectKey({ namespace, name: SECRET_NAME }));
    if (secret === undefined)
      throw new ControllerError('Webhook.SecretMissing', `there is no Secret ${SECRET_NAME} in ${namespace}`);
    const state = this.#stateOf(secret);
    const { now } = state;
    const step = nextStep(state);
    switch (step.kind) {
      case 'MakeAuthority': {
        const { cert, key } = await makeAuthority(now);
        await this.#write(secret, {
          [KEY.bundle]: textOf(certificatesOf(cert), step.formerly),
          [KEY.authorityKey]: key,
        });
        logger.info({ formerCAs: step.formerly.length }, 'CA of the webhook server created');
        return undefined;
      }
      case 'Forget':
        await this.#write(secret, { [KEY.bundle]: textOf(step.bundle) });
        logger.info(
          'former CA of the webhook server is no longer trusted: all certificates that it signed have expired',
        );
        return undefined;
      case 'Trust':
        await this.#trust(secret.bundle);
        return undefined;
      case 'Issue': {
        const { cert, key } = await issueServing(step.authority, hosts, now);
        await this.#write(secret, pairData({ cert, key }));
        logger.info({ hosts }, 'certificate of the webhook server issued');
        return undefined;
      }
      case 'Wait':
        return { requeueAfterMs: Math.min(step.ms, LOOKS_AGAIN_MS) };
    }
  }

  #stateOf({ bundle, authorityKey, cert, key }: CachedSecret): CertificateState {
    const { hosts, configurations, clock } = this.#options;
    const authorities = certificatesOf(bundle);
    return {
      now: clock.wallTime().getTime(),
      hosts,
      bundle: authorities,
      authority: authorityOf(authorities[0], authorityKey),
      serving: servingOf(cert, key),
      trusted: configurations.flatMap(({ informer }) => informer.list().flatMap(({ trusted }) => trusted)),
    };
  }

  /** That version only: of two processes that both believe they lead, one is refused. */
  async #write({ namespace, name, resourceVersion }: CachedSecret, texts: Record<string, string>): Promise<void> {
    const { secretClient, permit } = this.#options;
    const data = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    );
    await secretClient.mergePatch({ namespace, name }, { metadata: { resourceVersion }, data }, { permit });
  }

  async #trust(bundle: string): Promise<void> {
    const { configurations, permit, logger } = this.#options;
    const caBundle = Buffer.from(bundle).toString('base64');
    for (const { informer, client } of configurations) {
      for (const { name, webhooks, resourceVersion } of informer.list()) {
        const all = webhooks.map((webhook) => ({ name: webhook, clientConfig: { caBundle } }));
        await client.strategicPatch({ name }, { metadata: { resourceVersion }, webhooks: all }, { permit });
        logger.info({ configuration: name }, 'CA written into a webhook configuration');
      }
    }
  }
}

function pairData({ cert, key }: IssuedPair): Record<string, string> {
  return { [KEY.cert]: cert, [KEY.key]: key };
}

function textOf(...groups: readonly (readonly CertificateFacts[])[]): string {
  return groups
    .flat()
    .map(({ pem }) => pem)
    .join('');
}
