import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { type Clock, sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { type CredentialPlugin, configInvalid, type PluginCredential } from './access-spec.ts';
import type { ConfigFields } from './config-fields.ts';

const PLUGIN_TIMEOUT_MS = 60_000;

/** The credential plugin that a user entry names; undefined when it names none. */
export function credentialPluginOf(user: ConfigFields, server: URL, clock: Clock): CredentialPlugin | undefined {
  const field = ['exec', 'auth-provider'].find((name) => user.has(name));
  if (field === undefined) return undefined;
  const entry = { name: 'user', exec: execOf(user), authProvider: user.raw('auth-provider') };
  let config: Promise<ClientNodeConfig> | undefined;
  return async (isRejected) => {
    // The library keeps a credential as long as it is not out of date; only a new instance asks again.
    if (isRejected) config = undefined;
    config ??= loadClientNode(entry, server);
    try {
      return await inTime(clock, config.then(credentialOf));
    } catch (error) {
      throw configInvalid(user.where(field), `gives no credential: ${messageOf(error)}`, error);
    }
  };
}

/** The library waits for its program for ever. */
async function inTime<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const late = sleep(clock, PLUGIN_TIMEOUT_MS, done.signal).then(() => {
    throw new Error(`no answer within ${PLUGIN_TIMEOUT_MS / 1000} s`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

interface ClientNodeConfig {
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

/** Costs 85 MB, so only those pay who need it. */
async function loadClientNode(user: Record<string, unknown>, server: URL): Promise<ClientNodeConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'cluster', server: server.href, skipTLSVerify: false }],
    users: [user],
    contexts: [{ name: 'context', cluster: 'cluster', user: user.name }],
    currentContext: 'context',
  });
  return config;
}

async function credentialOf(config: ClientNodeConfig): Promise<PluginCredential> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const { Authorization: authorization } = (options.headers ?? {}) as Record<string, unknown>;
  const { cert, key } = options;
  return {
    authorization: typeof authorization === 'string' ? authorization : undefined,
    cert: typeof cert === 'string' ? cert : undefined,
    key: typeof key === 'string' ? key : undefined,
  };
}

/** As in client-go, a command with a slash is relative to the kubeconfig, one without is looked up in the PATH. */
function execOf(user: ConfigFields): unknown {
  if (!user.has('exec')) return undefined;
  const command = user.fields('exec').requiredString('command');
  const path = command.includes('/') ? resolve(dirname(user.file), command) : command;
  return { ...(user.raw('exec') as object), command: path };
}
