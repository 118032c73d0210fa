import type { ResourceKind } from '../../kube/resource.ts';
import { aborted, type Runnable } from '../../manager.ts';
import {
  type BuiltController,
  type ControllerContext,
  type ControllerDefinition,
  groupOf,
} from '../../reconcile/controller-definition.ts';
import { ledReconciler } from '../../reconcile/led.ts';
import { HttpServer } from '../../server/http-server.ts';
import { TlsFiles } from '../../server/tls-source.ts';
import { CertificateController } from './certificate-controller.ts';
import { POD_WEBHOOKS, registerPodWebhooks } from './pod-webhooks.ts';
import { ServedCertificate } from './served-certificate.ts';
import { webhookApp } from './webhook-app.ts';
import type { ConfigurationObject, SecretObject } from './webhook-objects.ts';
import {
  CONFIGURATION_NAME,
  cachedConfigurations,
  cachedSecrets,
  MUTATING_CONFIGURATIONS,
  SECRET_NAME,
  SECRETS,
  VALIDATING_CONFIGURATIONS,
} from './webhook-objects.ts';

const NAME = 'admission';
const SERVER = 'webhooks';
/** There is one Secret and one bundle of CAs. */
const KEY = 'webhook';

/**
 * The webhook server, in every process, and the rules for Pods of modules. One process of several, the leader, makes
 * its certificates.
 */
export const ADMISSION: ControllerDefinition = {
  name: NAME,
  summary: 'the webhook that completes Pods of modules, and asks the other controllers about requests',
  access: [
    ...[MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS].map((kind) => ({
      kind,
      verbs: ['list', 'watch', 'patch'] as const,
      names: [CONFIGURATION_NAME],
      unless: 'WEBHOOK_CERT_PATH',
      use: 'CertificateController: the CA in its own webhook configurations.',
    })),
    {
      kind: SECRETS,
      verbs: ['list', 'watch', 'patch'],
      names: [SECRET_NAME],
      namespace: 'own',
      unless: 'WEBHOOK_CERT_PATH',
      use: 'CertificateController: the certificates of the webhook server, in one Secret that the manifests make.',
    },
  ],
  leads: true,
  webhooks: POD_WEBHOOKS,
  variables: ['WEBHOOK_PORT', 'WEBHOOK_HOSTS', 'WEBHOOK_CERT_PATH', 'WEBHOOK_KEY_PATH'],
  metrics: ['admissionReviews', 'webhookCertificateEnd'],
  build: async (context) => {
    const { config, webhooks, reviews, clock, logger, metrics } = context;
    if (config.webhook === undefined) throw new Error('the configuration has no webhook server');
    registerPodWebhooks(webhooks, config.env);
    const { port, files } = config.webhook;
    const app = webhookApp({ webhooks: reviews, clock, logger, metrics });
    const server = { name: SERVER, port, app, clock, logger, metrics };
    if (files === undefined) return withOwnCertificates(context, config.webhook.hosts, server);
    const tls = await TlsFiles.load({ ...files, name: SERVER, ...context });
    return { groups: [[tls, new HttpServer({ ...server, tls })]] };
  },
};

function withOwnCertificates(
  context: ControllerContext,
  hosts: readonly string[],
  server: Omit<ConstructorParameters<typeof HttpServer>[0], 'tls'>,
): BuiltController {
  const { config, informers, resources, permit, ...shared } = context;
  const { namespace } = config.pod;
  const secrets = informers.get(cachedSecrets(namespace));
  const configurations = [MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS].map((kind: ResourceKind) => ({
    informer: informers.get(cachedConfigurations(kind)),
    client: resources.of<ConfigurationObject>(kind),
  }));
  const tls = new ServedCertificate({ secrets, ...shared });
  const secretClient = resources.of<SecretObject>(SECRETS);
  const certificates = new CertificateController({
    namespace,
    hosts,
    secrets,
    secretClient,
    configurations,
    permit,
    ...shared,
  });
  const reconcile = certificates.reconcile.bind(certificates);
  const reconciler = ledReconciler(NAME, context, { workers: 1, reconcile });
  const keysOf = (): string[] => [KEY];
  reconciler.watch({ informer: secrets, keysOf });
  for (const { informer } of configurations) reconciler.watch({ informer, keysOf });
  // Also where there is neither a Secret nor a configuration yet.
  reconciler.addKeys(keysOf);
  // The parts of the next group wait for it; it has nothing to do itself.
  const waiting: Runnable = { name: 'webhook certificate', run: aborted, whenReady: () => tls.whenThere() };
  return {
    groups: [[...groupOf({ 'webhook certificates': reconciler }), waiting], [new HttpServer({ ...server, tls })]],
    readiness: () => ({ 'webhook certificate': tls.isValid() }),
  };
}
