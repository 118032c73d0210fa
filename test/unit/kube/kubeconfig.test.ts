import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterAccess } from '../../../src/kube/auth/cluster-access.ts';
import { type ClusterAccessOptions, loadClusterAccess } from '../../../src/kube/auth/kubeconfig.ts';
import { silentLogger } from '../../../src/logger.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Identity, TestAuthority } from './support/certificates.ts';
import { KubeconfigDir } from './support/kubeconfig-dir.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

let authority: TestAuthority;
let client: Identity;
let dir: KubeconfigDir;

beforeAll(() => {
  authority = new TestAuthority();
  client = authority.issue('admin', 'DNS:admin');
});
afterAll(() => authority.remove());
beforeEach(() => {
  dir = new KubeconfigDir();
});
afterEach(() => dir.remove());

const load = (options: Partial<ClusterAccessOptions>): Promise<ClusterAccess> =>
  loadClusterAccess({ clock: new FakeClock(), logger: silentLogger, ...options });
const loadConfig = (fields: Parameters<KubeconfigDir['config']>[1]): Promise<ClusterAccess> =>
  load({ kubeconfigPath: dir.config('config', fields) });

describe('loadClusterAccess with a kubeconfig', () => {
  it('takes data in base64, token and TLS settings', async () => {
    const access = await loadConfig({
      cluster: { 'certificate-authority-data': base64(authority.ca), 'tls-server-name': 'kubernetes' },
      user: { 'client-certificate-data': base64(client.cert), 'client-key-data': base64(client.key), token: 'abc' },
    });
    expect(access.server.href).toBe('https://10.0.0.1:6443/');
    expect(access.tls()).toEqual({
      ca: authority.ca,
      cert: client.cert,
      key: client.key,
      servername: 'kubernetes',
      rejectUnauthorized: true,
    });
    expect(access.authorization()).toBe('Bearer abc');
  });

  it('takes files, relative to the kubeconfig', async () => {
    mkdirSync(join(dir.path, 'pki'));
    dir.write('pki/ca.crt', authority.ca);
    dir.write('admin.crt', client.cert);
    const key = dir.write('admin.key', client.key);
    dir.write('token', 'from-file\n');
    const access = await loadConfig({
      cluster: { 'certificate-authority': 'pki/ca.crt' },
      user: { 'client-certificate': './admin.crt', 'client-key': key, tokenFile: 'token', token: 'inline' },
    });
    expect(access.tls()).toEqual({ ca: authority.ca, cert: client.cert, key: client.key, rejectUnauthorized: true });
    expect(access.authorization()).toBe('Bearer from-file');
  });

  it('takes data before a file', async () => {
    const data = base64(authority.ca);
    const access = await loadConfig({
      cluster: { 'certificate-authority': 'absent', 'certificate-authority-data': data },
    });
    expect(access.tls().ca).toBe(authority.ca);
  });

  it('verifies the server unless told not to, and goes without credentials', async () => {
    const careful = await loadConfig({});
    expect(careful.tls()).toEqual({ rejectUnauthorized: true });
    expect(careful.authorization()).toBeUndefined();
    const careless = await loadConfig({ cluster: { 'insecure-skip-tls-verify': true } });
    expect(careless.tls()).toEqual({ rejectUnauthorized: false });
  });

  it('takes a context without a user', async () => {
    const document = { contexts: [{ name: 'main', context: { cluster: 'home' } }], users: null };
    expect((await loadConfig({ document })).authorization()).toBeUndefined();
  });

  it('merges a list of files: the first wins name by name, paths stay relative to their own file', async () => {
    mkdirSync(join(dir.path, 'other'));
    dir.write('other/token', 'second-token');
    const first = dir.config('first', {
      cluster: { server: 'https://first' },
      document: { 'current-context': '', users: [] },
    });
    const second = dir.config('other/second', {
      cluster: { server: 'https://second' },
      user: { tokenFile: 'token' },
      document: { 'current-context': 'main' },
    });
    const absent = join(dir.path, 'absent');
    const access = await load({ kubeconfigPath: [absent, first, second].join(':') });
    expect([access.server.host, access.authorization()]).toEqual(['first', 'Bearer second-token']);
  });

  it.each<[string, Parameters<KubeconfigDir['config']>[1], string]>([
    ['a missing current-context', { document: { 'current-context': '' } }, 'config: current-context: is missing'],
    [
      'a context that is not there',
      { document: { 'current-context': 'else' } },
      'config: current-context: there is no context "else"',
    ],
    [
      'a missing cluster',
      { document: { clusters: [] } },
      'config: contexts[main].context.cluster: there is no cluster "home"',
    ],
    ['a missing user', { document: { users: [] } }, 'config: contexts[main].context.user: there is no user "admin"'],
    ['a list that is none', { document: { users: 'x' } }, 'config: users: must be a list'],
    ['an entry without a name', { document: { users: [{}] } }, 'config: users[0].name: is missing'],
    [
      'a server that is no URL',
      { cluster: { server: '10.0.0.1' } },
      'config: clusters[home].cluster.server: must be an http(s) URL',
    ],
    ['a proxy', { cluster: { 'proxy-url': 'http://p' } }, 'config: clusters[home].cluster.proxy-url: is not supported'],
    ['a password', { user: { username: 'u', password: 'p' } }, 'config: users[admin].user.username: is not supported'],
    ['impersonation', { user: { as: 'root' } }, 'config: users[admin].user.as: is not supported'],
    ['a token that is a number', { user: { token: 5 } }, 'config: users[admin].user.token: must be a string'],
    ['a token with a line break', { user: { token: 'a\nb' } }, 'config: users[admin].user.token: is not a token'],
    [
      'an absent token file',
      { user: { tokenFile: 'absent' } },
      'config: users[admin].user.tokenFile: cannot be read: ENOENT',
    ],
    [
      'a CA that is none',
      { cluster: { 'certificate-authority-data': base64('no PEM') } },
      'config: clusters[home].cluster.certificate-authority-data: is not usable',
    ],
    [
      'a certificate without its key',
      { user: { 'client-certificate-data': base64('x') } },
      'config: users[admin].user.client-certificate-data: needs both certificate and key',
    ],
    [
      'a certificate that is none',
      { user: { 'client-certificate-data': base64('x'), 'client-key-data': base64('y') } },
      'config: users[admin].user.client-certificate-data: is not usable',
    ],
    [
      'a plugin that is not there',
      { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './absent' } } },
      'config: users[admin].user.exec: gives no credential',
    ],
    [
      'a plugin of a version that is gone',
      { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'x' } } },
      'config: users[admin].user.exec.apiVersion: must be client.authentication.k8s.io/v1 or',
    ],
    [
      'a plugin that wants to talk with someone',
      { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Always' } } },
      'config: users[admin].user.exec.interactiveMode: cannot be Always',
    ],
    [
      'arguments of a plugin that are no list of strings',
      { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', args: [1] } } },
      'config: users[admin].user.exec.args: must be a list of strings',
    ],
    [
      'a variable of a plugin without a name',
      { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', env: [{ value: 'a' }] } } },
      'config: users[admin].user.exec.env[0].name: is missing',
    ],
    [
      'an auth provider that is no longer of this world',
      { user: { 'auth-provider': { name: 'gcp' } } },
      'config: users[admin].user.auth-provider.name: "gcp" is not supported; use exec',
    ],
    // The library that starts plugins takes seconds to import on a busy machine.
  ])('refuses %s', { timeout: 30_000 }, async (_what, fields, message) => {
    const failure = await loadConfig(fields).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'Kube.ConfigInvalid' });
    expect((failure as Error).message).toContain(`${dir.path}/${message}`);
  });

  it('refuses a file that is absent or no YAML, without quoting it', async () => {
    const absent = join(dir.path, 'absent');
    await expect(load({ kubeconfigPath: absent })).rejects.toMatchObject({
      code: 'Kube.ConfigInvalid',
      message: expect.stringContaining(`${absent}: cannot be read: ENOENT`),
      cause: { code: 'ENOENT' },
    });
    await expect(load({ kubeconfigPath: `${absent}:${absent}` })).rejects.toMatchObject({
      message: `${absent}:${absent}: no kubeconfig found`,
    });
    await expect(load({ kubeconfigPath: `${absent}:${absent}2` })).rejects.toThrow('no kubeconfig found');
    const broken = dir.write('broken', 'token: "secret\n  : [');
    const failure = (await load({ kubeconfigPath: broken }).catch((error: unknown) => error)) as Error;
    expect(failure.message).toContain(`${broken}: is not YAML`);
    expect(failure.message).not.toContain('secret');
    await expect(load({ kubeconfigPath: dir.write('list', '- a\n') })).rejects.toThrow('document: must be a mapping');
  });
});

describe('loadClusterAccess inside a pod', () => {
  beforeEach(() => {
    dir.write('ca.crt', authority.ca);
    dir.write('token', 'pod-token\n');
  });

  it.each([
    ['10.96.0.1', '443', 'https://10.96.0.1/'],
    ['fd00::1', '6443', 'https://[fd00::1]:6443/'],
    ['kubernetes', undefined, 'https://kubernetes/'],
  ])('connects to %s port %s with the service account', async (inClusterHost, inClusterPort, server) => {
    const access = await load({ serviceAccountDir: dir.path, inClusterHost, inClusterPort });
    expect(access.server.href).toBe(server);
    expect(access.tls()).toEqual({ ca: authority.ca, rejectUnauthorized: true });
    expect(access.authorization()).toBe('Bearer pod-token');
  });

  it('names what is missing', async () => {
    await expect(load({})).rejects.toThrow('KUBERNETES_SERVICE_HOST is missing');
    const serviceAccountDir = join(dir.path, 'absent');
    await expect(load({ serviceAccountDir, inClusterHost: 'h' })).rejects.toThrow(
      new RegExp(`^${serviceAccountDir}/(ca.crt|token): cannot be read`),
    );
  });
});
