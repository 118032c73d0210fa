import type { Dispatcher } from 'undici';
import { type Clock, sleep } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import { type CredentialPlugin, configInvalid, readSource, type TextSource } from './cluster-access.ts';
import { ConfigFields } from './config-fields.ts';
import { bearerOf, type DatedCredential, keepCredential } from './credential-keeper.ts';

/**
 * The plugin of a user with `auth-provider: oidc`. Not that of `@kubernetes/client-node`, which sends no client secret,
 * forgets a refresh token that was not replaced, takes the lifetime of a token for its end, and waits for ever.
 * New tokens are kept in memory: a refresh token that works only once has to be put into the kubeconfig again before
 * the next start.
 */
export function oidcPluginOf(user: ConfigFields, clock: Clock): CredentialPlugin {
  const provider = user.fields('auth-provider');
  const name = provider.requiredString('name');
  if (name !== 'oidc') throw configInvalid(provider.where('name'), `"${name}" is not supported; use exec`);
  const config = provider.fields('config');
  const idToken = config.string('id-token');
  let refreshToken = config.string('refresh-token');
  const fetch = async (): Promise<DatedCredential> => {
    if (refreshToken === undefined)
      throw new Error('the id-token is invalid or expired, and there is no refresh-token');
    const tokens = await refreshTokens({
      issuer: config.requiredString('idp-issuer-url'),
      clientId: config.requiredString('client-id'),
      clientSecret: config.string('client-secret'),
      ca: config.pem('idp-certificate-authority'),
      refreshToken,
      clock,
    });
    refreshToken = tokens.refreshToken ?? refreshToken;
    return datedCredentialOf(tokens.idToken);
  };
  return keepCredential({ clock, fetch, initial: idToken === undefined ? undefined : datedCredentialOf(idToken) });
}

function datedCredentialOf(idToken: string): DatedCredential {
  return { credential: { authorization: bearerOf(idToken) }, expiresAtMs: expiryOf(idToken) };
}

/** A token that cannot be read is taken as out of date: a new one may be better. */
function expiryOf(idToken: string): number {
  try {
    const payload: unknown = JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const { exp } = payload as { exp?: unknown };
    return typeof exp === 'number' ? exp * 1000 : 0;
  } catch {
    return 0;
  }
}

/** Timeout of discovery and refresh together. */
const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_COMPLAINT_CHARS = 300;

interface RefreshOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  /** Default: the authorities that Node knows. */
  readonly ca: TextSource | undefined;
  readonly refreshToken: string;
  readonly clock: Clock;
}

interface Tokens {
  readonly idToken: string;
  /** Undefined when the old one stays good. */
  readonly refreshToken: string | undefined;
}

/** Gets a new id-token from the issuer (OpenID Connect Discovery 1.0, OAuth 2.0 section 6). Errors name the URL. */
async function refreshTokens(options: RefreshOptions): Promise<Tokens> {
  const ca = await readSource(options.ca);
  // A large package, and for those with such a kubeconfig only.
  const { Agent } = await import('undici');
  const dispatcher = new Agent({ connect: ca === undefined ? {} : { ca }, maxResponseSize: MAX_ANSWER_BYTES });
  const deadline = new AbortController();
  const done = new AbortController();
  void sleep(options.clock, TIMEOUT_MS, done.signal).then(() => deadline.abort());
  try {
    return await discoverAndRefresh(options, { dispatcher, signal: deadline.signal });
  } finally {
    done.abort();
    await dispatcher.destroy();
  }
}

interface Line {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

async function discoverAndRefresh(options: RefreshOptions, line: Line): Promise<Tokens> {
  const discoveryUrl = `${options.issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`;
  const discovered = await ask(discoveryUrl, { ...line, method: 'GET' });
  const methods = discovered.list('token_endpoint_auth_methods_supported');
  const isBasic = methods.length === 0 || methods.includes('client_secret_basic');
  const answer = await ask(discovered.requiredString('token_endpoint'), {
    ...line,
    method: 'POST',
    ...grantOf(options, isBasic),
  });
  return { idToken: answer.requiredString('id_token'), refreshToken: answer.string('refresh_token') };
}

/** The secret goes into a header where the issuer takes it there, as OAuth 2.0 prefers; else into the form. */
function grantOf({ clientId, clientSecret, refreshToken }: RefreshOptions, isBasic: boolean) {
  const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
  const headers: Record<string, string> = { 'content-type': 'application/x-www-form-urlencoded' };
  if (clientSecret !== undefined && isBasic) {
    const pair = [clientId, clientSecret].map(encodeURIComponent).join(':');
    headers.authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
  } else {
    form.set('client_id', clientId);
    if (clientSecret !== undefined) form.set('client_secret', clientSecret);
  }
  return { headers, body: form.toString() };
}

type Question = Line & { method: 'GET' | 'POST'; headers?: Record<string, string>; body?: string };

async function ask(url: string, { dispatcher, ...question }: Question): Promise<ConfigFields> {
  const target = URL.parse(url);
  if (target?.protocol !== 'https:') throw new Error(`${url}: must be an https URL`);
  try {
    const { origin, pathname, search } = target;
    const response = await dispatcher.request({ ...question, origin, path: pathname + search });
    const text = await response.body.text();
    if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}${complaintOf(text)}`);
    return new ConfigFields(url, '', parseJson(text));
  } catch (error) {
    throw new Error(
      `${url}: ${question.signal.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : messageOf(error)}`,
    );
  }
}

/** Answers may hold tokens, so they are never quoted. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the answer is not JSON');
  }
}

/** `error` and `error_description` of OAuth 2.0; they hold no secrets. */
function complaintOf(text: string): string {
  try {
    const { error, error_description: description } = JSON.parse(text) as Record<string, unknown>;
    const words = [error, description].filter((word) => typeof word === 'string').join(': ');
    return words === '' ? '' : `: ${words.slice(0, MAX_COMPLAINT_CHARS)}`;
  } catch {
    return '';
  }
}
