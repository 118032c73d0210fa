import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import {
  type AccessSpec,
  type ClusterAccess,
  type CredentialPlugin,
  configInvalid,
  type TextSource,
} from './cluster-access.ts';
import type { ConfigFields } from './config-fields.ts';
import { execPluginOf } from './exec-plugin.ts';
import { readKubeconfigs, type SelectedContext } from './kubeconfig-file.ts';
import { oidcPluginOf } from './oidc-plugin.ts';
import { RefreshingAccess } from './refreshing-access.ts';

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface ClusterAccessOptions {
  /** One path, or several as in `KUBECONFIG`. Without it the service account of the pod is used. */
  readonly kubeconfigPath?: string | undefined;
  /** Default the path inside every pod. */
  readonly serviceAccountDir?: string | undefined;
  /** `KUBERNETES_SERVICE_HOST`. */
  readonly inClusterHost?: string | undefined;
  /** `KUBERNETES_SERVICE_PORT`. Default 443. */
  readonly inClusterPort?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Rejects with `Kube.ConfigInvalid`, naming file and field, when the access cannot work. */
export async function loadClusterAccess(options: ClusterAccessOptions): Promise<ClusterAccess> {
  const { kubeconfigPath } = options;
  const spec = kubeconfigPath
    ? specOfContext(await readKubeconfigs(kubeconfigPath), options.clock)
    : inClusterSpec(options);
  return RefreshingAccess.open(spec, options);
}

function inClusterSpec(options: ClusterAccessOptions): AccessSpec {
  const { inClusterHost: host, inClusterPort = '443', serviceAccountDir = SERVICE_ACCOUNT_DIR } = options;
  if (!host)
    throw configInvalid(
      'KUBECONFIG',
      'is not set, and the process does not run in a Pod: KUBERNETES_SERVICE_HOST is missing',
    );
  const file = (name: string): TextSource => {
    const path = join(serviceAccountDir, name);
    return { path, where: path };
  };
  return {
    server: parseServer(
      'KUBERNETES_SERVICE_HOST',
      `https://${host.includes(':') ? `[${host}]` : host}:${inClusterPort}`,
    ),
    isInsecure: false,
    ca: file('ca.crt'),
    token: file('token'),
  };
}

function specOfContext(context: SelectedContext, clock: Clock): AccessSpec {
  const { cluster, user } = context;
  cluster.refuse('proxy-url');
  for (const field of ['username', 'password', 'as', 'as-groups', 'as-uid', 'as-user-extra']) user.refuse(field);
  return {
    server: parseServer(cluster.where('server'), cluster.requiredString('server')),
    servername: cluster.string('tls-server-name'),
    isInsecure: cluster.boolean('insecure-skip-tls-verify'),
    ca: cluster.pem('certificate-authority'),
    cert: user.pem('client-certificate'),
    key: user.pem('client-key'),
    token: tokenOf(user),
    plugin: credentialPluginOf(context, clock),
  };
}

/** Token of a user. The file wins, as in client-go. */
function tokenOf(user: ConfigFields): TextSource | undefined {
  const path = user.path('tokenFile');
  if (path !== undefined) return { path, where: user.where('tokenFile') };
  const text = user.string('token');
  return text === undefined ? undefined : { text, where: user.where('token') };
}

function parseServer(where: string, text: string): URL {
  const url = URL.parse(text);
  if (!url || !['https:', 'http:'].includes(url.protocol)) throw configInvalid(where, 'must be an http(s) URL');
  return url;
}

/** The credential plugin that the user of a context names; undefined when it names none. */
function credentialPluginOf(context: SelectedContext, clock: Clock): CredentialPlugin | undefined {
  const { user } = context;
  if (user.has('exec')) return naming(user.where('exec'), execPluginOf(context, clock));
  if (user.has('auth-provider')) return naming(user.where('auth-provider'), oidcPluginOf(user, clock));
  return undefined;
}

/** Errors get the code and the name of the field. */
function naming(where: string, plugin: CredentialPlugin): CredentialPlugin {
  return async (isRejected) => {
    try {
      return await plugin(isRejected);
    } catch (error) {
      throw configInvalid(where, `gives no credential: ${messageOf(error)}`, error);
    }
  };
}
