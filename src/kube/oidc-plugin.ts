import type { Clock } from '../clock.ts';
import { type CredentialPlugin, configInvalid } from './access-spec.ts';
import type { ConfigFields } from './config-fields.ts';
import { bearerOf, type DatedCredential, keepCredential } from './credential-keeper.ts';
import { refreshTokens } from './oidc-refresh.ts';

/**
 * The plugin of a user with `auth-provider: oidc`. Not that of `@kubernetes/client-node`, which sends no client secret,
 * forgets a refresh token that was not replaced, takes the lifetime of a token for its end, and waits for ever.
 * New tokens are kept in memory: a refresh token that works only once has to be put into the kubeconfig anew before
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
      throw new Error('the id-token is not valid (any more) and there is no refresh-token');
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
