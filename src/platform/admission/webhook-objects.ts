import type { KubeObject } from '../../kube/objects.ts';
import { collectionPathOf, type ResourceKind } from '../../kube/resource.ts';
import { type CachedObject, metaOf } from '../../kube/watch/informer-types.ts';
import type { WatchedKind } from '../../reconcile/informers.ts';
import { type CertificateFacts, certificatesOf } from './certificates.ts';

/** Made by the manifests, so that the controller needs no right to create any. */
export const SECRET_NAME = 'module-platform-webhook';
/** Name of both webhook configurations. */
export const CONFIGURATION_NAME = 'module-platform';

export const SECRETS: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  isNamespaced: true,
};

const CONFIGURATIONS = { group: 'admissionregistration.k8s.io', version: 'v1', isNamespaced: false } as const;

export const MUTATING_CONFIGURATIONS: ResourceKind = {
  ...CONFIGURATIONS,
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
};

export const VALIDATING_CONFIGURATIONS: ResourceKind = {
  ...CONFIGURATIONS,
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
};

export interface SecretObject extends KubeObject {
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface ConfigurationObject extends KubeObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[];
}

/** Texts in PEM; '' = not there. */
export interface CachedSecret extends CachedObject {
  /** The CAs that are trusted. */
  readonly bundle: string;
  /** Key of the newest one. */
  readonly authorityKey: string;
  readonly cert: string;
  readonly key: string;
}

/** A webhook configuration of this program. */
export interface CachedConfiguration extends CachedObject {
  readonly webhooks: readonly string[];
  /** What each webhook trusts. */
  readonly trusted: readonly (readonly CertificateFacts[])[];
}

/** Keys of the data, as in Secrets of `kubernetes.io/tls`, with the key of the CA. */
export const KEY = { bundle: 'ca.crt', authorityKey: 'ca.key', cert: 'tls.crt', key: 'tls.key' } as const;

/** The Secret of this program, in its namespace. */
export function cachedSecrets(namespace: string): WatchedKind<CachedSecret> {
  return {
    kind: SECRETS.kind,
    path: collectionPathOf(SECRETS, namespace),
    fieldSelector: `metadata.name=${SECRET_NAME}`,
    project: projectSecret,
  };
}

export function cachedConfigurations(kind: ResourceKind): WatchedKind<CachedConfiguration> {
  return {
    kind: kind.kind,
    path: collectionPathOf(kind),
    fieldSelector: `metadata.name=${CONFIGURATION_NAME}`,
    project: projectConfiguration,
  };
}

function projectSecret(object: KubeObject): CachedSecret {
  const { data = {} } = object as SecretObject;
  const textOf = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString();
  return {
    ...metaOf(object),
    bundle: textOf(KEY.bundle),
    authorityKey: textOf(KEY.authorityKey),
    cert: textOf(KEY.cert),
    key: textOf(KEY.key),
  };
}

function projectConfiguration(object: KubeObject): CachedConfiguration {
  const { webhooks = [] } = object as ConfigurationObject;
  return {
    ...metaOf(object),
    webhooks: webhooks.map(({ name }) => name),
    trusted: webhooks.map(({ clientConfig }) =>
      certificatesOf(Buffer.from(clientConfig.caBundle ?? '', 'base64').toString()),
    ),
  };
}
