import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterAccess } from '../../../src/kube/auth/cluster-access.ts';
import { loadClusterAccess } from '../../../src/kube/auth/kubeconfig.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Identity, TestAuthority } from './support/certificates.ts';
import { KubeconfigDir } from './support/kubeconfig-dir.ts';
import { OidcIssuer } from './support/oidc-issuer.ts';
import { capturedLogger } from './support/rig.ts';
import { until } from './support/until.ts';

const WALL_START = Date.parse('2026-01-01T00:00:00.000Z');

let authority: TestAuthority;
let identity: Identity;
let dir: KubeconfigDir;
let clock: FakeClock;
let issuer: OidcIssuer;
const { logger, lines } = capturedLogger();

beforeAll(() => {
  authority = new TestAuthority();
  identity = authority.issue('issuer', 'IP:127.0.0.1');
});
afterAll(() => authority.remove());
beforeEach(async () => {
  dir = new KubeconfigDir();
  clock = new FakeClock();
  issuer = await OidcIssuer.start(identity);
  lines.length = 0;
});
afterEach(async () => {
  await issuer.stop();
  dir.remove();
});

/** An unsigned token that is valid for so long. */
function idToken(subject: string, seconds: number): string {
  const exp = Math.floor((WALL_START + clock.now()) / 1000) + seconds;
  return tokenOf({ sub: subject, exp });
}

function tokenOf(payload: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return [part({ alg: 'none' }), part(payload), 'signature'].join('.');
}

function load(config: object): Promise<ClusterAccess> {
  const complete = {
    'idp-issuer-url': issuer.url,
    'client-id': 'controller',
    'idp-certificate-authority-data': Buffer.from(authority.ca).toString('base64'),
    'refresh-token': 'refresh-1',
    ...config,
  };
  const user = { 'auth-provider': { name: 'oidc', config: complete } };
  return loadClusterAccess({ kubeconfigPath: dir.config('config', { user }), clock, logger });
}

async function running<T>(access: ClusterAccess, act: () => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const run = access.run(abort.signal);
  try {
    return await act();
  } finally {
    abort.abort();
    await run;
  }
}
/** Lets a minute pass and the token be looked at, until what is to come of it has come. */
async function minute(hasCome: () => boolean = () => true): Promise<void> {
  clock.advance(60_000);
  await until(() => clock.pending === 1 && hasCome(), 'the end of the look');
}

describe('a user with auth-provider oidc', () => {
  it('uses the id-token while it is valid, without asking anybody', async () => {
    const token = idToken('one', 600);
    const access = await load({ 'id-token': token, 'idp-issuer-url': 'https://127.0.0.1:1' });
    await running(access, async () => {
      for (let count = 0; count < 5; count++) await minute();
    });
    expect(access.authorization()).toBe(`Bearer ${token}`);
    expect(issuer.requests).toEqual([]);
  });

  it.each([
    ['cannot be read', 'token'],
    ['does not say when it expires', tokenOf({ sub: 'one' })],
    ['says so in words', tokenOf({ sub: 'one', exp: 'tomorrow' })],
  ])('gets a new one for an id-token that %s', async (_, token) => {
    const second = idToken('two', 3600);
    issuer.answer = { body: { id_token: second } };
    const access = await load({ 'id-token': token });
    await running(access, () => minute(() => access.authorization() === `Bearer ${second}`));
    expect(issuer.requests).toHaveLength(1);
  });

  it('gets a new one before it expires, each time with the newest refresh token', async () => {
    const access = await load({ 'id-token': idToken('one', 100) });
    const [second, third, fourth] = [idToken('two', 220), idToken('three', 340), idToken('four', 3600)];
    const got = (token: string) => () => access.authorization() === `Bearer ${token}`;
    await running(access, async () => {
      issuer.answer = { body: { id_token: second, refresh_token: 'refresh-2', expires_in: 3600 } };
      await minute(got(second));
      await minute();
      issuer.answer = { body: { id_token: third } };
      await minute(got(third));
      await minute();
      issuer.answer = { body: { id_token: fourth } };
      await minute(got(fourth));
    });
    expect(issuer.requests.map(({ form }) => form.refresh_token)).toEqual(['refresh-1', 'refresh-2', 'refresh-2']);
  });

  it.each<[string, object, object, object]>([
    [
      'nothing, as a public client',
      {},
      {},
      { authorization: undefined, form: expect.objectContaining({ client_id: 'controller' }) },
    ],
    [
      'its secret in a header',
      { 'client-secret': 'a:b c' },
      {},
      {
        authorization: `Basic ${Buffer.from('controller:a%3Ab%20c').toString('base64')}`,
        form: { grant_type: 'refresh_token', refresh_token: 'refresh-1' },
      },
    ],
    [
      'its secret in the form, where the issuer wants it there',
      { 'client-secret': 'a:b c' },
      { token_endpoint_auth_methods_supported: ['client_secret_post'] },
      {
        authorization: undefined,
        form: expect.objectContaining({ client_id: 'controller', client_secret: 'a:b c' }),
      },
    ],
  ])('shows %s', async (_what, config, discovery, request) => {
    issuer.discovery = discovery;
    issuer.answer = { body: { id_token: idToken('one', 600) } };
    await load(config);
    expect(issuer.requests).toEqual([request]);
  });

  it('gets a new one once after a 401, though the old one has not expired', async () => {
    const access = await load({ 'id-token': idToken('one', 600) });
    const next = idToken('two', 600);
    issuer.answer = { body: { id_token: next } };
    expect(await access.onUnauthorized(access.authorization())).toBe(true);
    expect(await access.onUnauthorized(access.authorization())).toBe(false);
    expect(access.authorization()).toBe(`Bearer ${next}`);
    expect(issuer.requests).toHaveLength(1);
  });

  it('starts with a token that expires in a minute when the issuer is down', async () => {
    issuer.answer = { status: 503, body: '' };
    const token = idToken('one', 60);
    expect((await load({ 'id-token': token })).authorization()).toBe(`Bearer ${token}`);
  });

  it('keeps what it has while the issuer fails, says so, and tries again', async () => {
    const token = idToken('one', 100);
    const access = await load({ 'id-token': token });
    await running(access, async () => {
      issuer.answer = { status: 503, body: 'down' };
      await minute(() => lines.length === 1);
      await minute(() => lines.length === 2);
      expect(access.authorization()).toBe(`Bearer ${token}`);
      expect(JSON.stringify(lines[1])).toContain(`${issuer.url}/token: answered 503`);
      const next = idToken('two', 600);
      issuer.answer = { body: { id_token: next } };
      await minute(() => access.authorization() === `Bearer ${next}`);
    });
    expect(JSON.stringify(lines)).not.toContain('refresh-1');
  });
});

describe('an issuer that gives nothing', () => {
  const failureOf = async (config: object): Promise<string> => {
    const failure = await load(config).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'Kube.ConfigInvalid' });
    const { message } = failure as Error;
    expect(message).toContain('config: users[admin].user.auth-provider: gives no credential: ');
    expect(message).not.toContain('refresh-1');
    return message;
  };

  it.each<[string, { status?: number; body: object | string }, string]>([
    [
      'has lost the session',
      { status: 400, body: { error: 'invalid_grant', error_description: 'token expired' } },
      'answered 400: invalid_grant: token expired',
    ],
    ['fails', { status: 500, body: '<h1>refresh-1</h1>' }, 'answered 500'],
    ['fails in other words', { status: 400, body: { error: 'no', error_description: 7 } }, 'answered 400: no'],
    ['answers no JSON', { body: 'refresh-1' }, 'the answer is not JSON'],
    ['gives no id-token', { body: { access_token: 'a' } }, 'id_token: is missing'],
    ['sends us elsewhere', { status: 302, body: '' }, 'answered 302'],
  ])('is named when it %s', async (_what, answer, reason) => {
    issuer.answer = answer;
    const message = await failureOf({});
    expect(message).toContain(`${issuer.url}/token: `);
    expect(message).toContain(reason);
  });

  it('may answer with 1 MiB', async () => {
    const answer = JSON.stringify({ id_token: idToken('one', 600) });
    issuer.answer = { body: answer.padEnd(1024 * 1024) };
    expect((await load({})).authorization()).toBe(`Bearer ${idToken('one', 600)}`);
    issuer.answer = { body: answer.padEnd(1024 * 1024 + 1) };
    expect(await failureOf({})).toContain('/token: ');
  });

  it('is quoted with 300 characters at most', async () => {
    issuer.answer = { status: 400, body: { error: `why${'x'.repeat(400)}` } };
    expect(await failureOf({})).toMatch(/: answered 400: whyx{297}$/);
  });

  it('is named when it is not there, or has no discovery document', async () => {
    expect(await failureOf({ 'idp-issuer-url': 'https://127.0.0.1:1' })).toContain('ECONNREFUSED');
    expect(await failureOf({ 'idp-issuer-url': `${issuer.url}/else` })).toContain('openid-configuration: answered 404');
  });

  it('is not believed when its certificate is of another authority', async () => {
    const data = { 'idp-certificate-authority-data': undefined };
    expect(await failureOf(data)).toMatch(/certificate/);
  });

  it('is not waited for longer than 30 s', async () => {
    issuer.answer = { body: undefined };
    const failing = failureOf({});
    await until(() => issuer.requests.length === 1, 'the request');
    clock.advance(30_000);
    expect(await failing).toContain('/token: no answer within 30 s');
  });

  it('never gets a token over HTTP', async () => {
    expect(await failureOf({ 'idp-issuer-url': 'http://127.0.0.1/dex' })).toContain('must be an https URL');
    issuer.discovery = { token_endpoint: 'http://127.0.0.1/token' };
    expect(await failureOf({})).toContain('http://127.0.0.1/token: must be an https URL');
  });

  it.each([
    ['refresh-token', 'there is no refresh-token'],
    ['client-id', 'client-id: is missing'],
    ['idp-issuer-url', 'idp-issuer-url: is missing'],
  ])('is not even asked without %s', async (field, reason) => {
    expect(await failureOf({ 'id-token': idToken('one', -1), [field]: undefined })).toContain(reason);
  });
});
