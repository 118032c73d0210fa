import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClusterAccess } from '../../../src/kube/auth/cluster-access.ts';
import { loadClusterAccess } from '../../../src/kube/auth/kubeconfig.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TestAuthority } from './support/certificates.ts';
import { KubeconfigDir } from './support/kubeconfig-dir.ts';
import { capturedLogger } from './support/rig.ts';
import { until } from './support/until.ts';

const API_VERSION = 'client.authentication.k8s.io/v1';
const WALL_START = Date.parse('2026-01-01T00:00:00.000Z');

let dir: KubeconfigDir;
let clock: FakeClock;
let authority: TestAuthority;
let other: TestAuthority;
const { logger, lines } = capturedLogger();

beforeAll(async () => {
  authority = new TestAuthority();
  other = new TestAuthority();
  // Takes seconds on a busy machine; no test's time limit has to hold that.
  await import('@kubernetes/client-node');
}, 60_000);
afterAll(() => {
  authority.remove();
  other.remove();
});
beforeEach(() => {
  dir = new KubeconfigDir();
  clock = new FakeClock();
  lines.length = 0;
});
afterEach(() => dir.remove());

/** A plugin that notes each run in `runs` and then does what `script` says. */
function plugin(script: string): void {
  const path = dir.write('plugin.sh', `#!/bin/sh\ncd "$(dirname "$0")"\necho run >> runs\n${script}\n`);
  chmodSync(path, 0o755);
}
const runs = (): number =>
  existsSync(join(dir.path, 'runs')) ? readFileSync(join(dir.path, 'runs'), 'utf8').trim().split('\n').length : 0;

/** What the plugin prints from now on. */
function prints(status: object, more: object = {}): void {
  dir.write('output', JSON.stringify({ kind: 'ExecCredential', apiVersion: API_VERSION, status, ...more }));
}
const expiringIn = (seconds: number): string => new Date(WALL_START + clock.now() + seconds * 1000).toISOString();

function load(exec: object = {}, cluster: object = {}): Promise<ClusterAccess> {
  const fields = { apiVersion: API_VERSION, command: './plugin.sh', interactiveMode: 'Never', ...exec };
  return loadClusterAccess({
    kubeconfigPath: dir.config('config', { cluster, user: { exec: fields } }),
    clock,
    logger,
  });
}
const failureOf = async (loading: Promise<unknown>): Promise<string> => {
  const failure = await loading.catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'Kube.ConfigInvalid' });
  return (failure as Error).message;
};

describe('a user with exec', () => {
  it('gets the token that the plugin prints; its command is relative to the kubeconfig', async () => {
    plugin('cat output');
    prints({ token: 'issued' });
    expect((await load()).authorization()).toBe('Bearer issued');
  });

  it('gets the client certificate that it prints', async () => {
    const { cert, key } = authority.issue('plugin', 'DNS:plugin');
    plugin('cat output');
    prints({ clientCertificateData: cert, clientKeyData: key });
    const access = await load();
    expect(access.tls()).toMatchObject({ cert, key });
    expect(access.authorization()).toBeUndefined();
  });

  it('passes arguments and variables, what is to be known of the cluster, and our own environment', async () => {
    plugin('printf "%s|" "$@" "$REGION" "$KUBERNETES_EXEC_INFO" "$(test -n "$PATH" && echo path)" > seen\ncat output');
    prints({ token: 'issued' });
    const extension = { audience: 'a' };
    await load(
      { args: ['get token', '--quiet'], env: [{ name: 'REGION', value: 'east' }], provideClusterInfo: true },
      {
        'certificate-authority-data': Buffer.from(authority.ca).toString('base64'),
        extensions: [{ name: 'client.authentication.k8s.io/exec', extension }],
      },
    );
    const [first, second, region, info, path] = readFileSync(join(dir.path, 'seen'), 'utf8').split('|');
    expect([first, second, region, path]).toEqual(['get token', '--quiet', 'east', 'path']);
    expect(JSON.parse(info ?? '')).toEqual({
      kind: 'ExecCredential',
      apiVersion: API_VERSION,
      spec: {
        interactive: false,
        cluster: {
          server: 'https://10.0.0.1:6443',
          'insecure-skip-tls-verify': false,
          'certificate-authority-data': Buffer.from(authority.ca).toString('base64'),
          config: extension,
        },
      },
    });
  });

  it('takes a variable without a value for an empty one', async () => {
    plugin('env | grep -qx EMPTY= && cat output');
    prints({ token: 'issued' });
    expect((await load({ env: [{ name: 'EMPTY' }] })).authorization()).toBe('Bearer issued');
  });

  it('may print 1 MiB', async () => {
    plugin('cat output');
    const text = JSON.stringify({ kind: 'ExecCredential', apiVersion: API_VERSION, status: { token: 'issued' } });
    dir.write('output', text.padEnd(1024 * 1024));
    expect((await load()).authorization()).toBe('Bearer issued');
    dir.write('output', text.padEnd(1024 * 1024 + 1));
    expect(await failureOf(load())).toContain('printed more than 1 MiB');
  });

  it('is quoted with the last 500 characters of what it says of a fault', async () => {
    plugin(`echo "${'a'.repeat(100)}${'b'.repeat(499)}" >&2; exit 1`);
    expect(await failureOf(load())).toMatch(/: b{499}$/);
  });

  it('says nothing of the cluster unless told to, and gives no input', async () => {
    plugin('printf "%s" "$KUBERNETES_EXEC_INFO" > seen\n[ -z "$(cat)" ] && cat output');
    prints({ token: 'issued' });
    await load();
    expect(JSON.parse(readFileSync(join(dir.path, 'seen'), 'utf8')).spec).toEqual({ interactive: false });
  });
});

describe('a credential from exec', () => {
  let access: ClusterAccess;
  let running: Promise<void>;
  let abort: AbortController;

  const open = async (): Promise<void> => {
    plugin('cat output');
    access = await load();
    abort = new AbortController();
    running = access.run(abort.signal);
  };
  /** Lets a minute pass and the credential be looked at, until what is to come of it has come. */
  const minute = async (hasCome: () => boolean = () => true): Promise<void> => {
    clock.advance(60_000);
    await until(() => clock.pending === 1 && hasCome(), 'the end of the look');
  };
  const has = (token: string) => (): boolean => access.authorization() === `Bearer ${token}`;
  afterEach(async () => {
    abort.abort();
    await running;
  });

  it('is asked for again before it expires, and not sooner', async () => {
    prints({ token: 'one', expirationTimestamp: expiringIn(200) });
    await open();
    prints({ token: 'two', expirationTimestamp: expiringIn(3600) });
    await minute();
    expect([access.authorization(), runs()]).toEqual(['Bearer one', 1]);
    await minute(has('two'));
    expect(runs()).toBe(2);
    for (let count = 0; count < 5; count++) await minute();
    expect(runs()).toBe(2);
  });

  it('is kept for ever when it does not expire', async () => {
    prints({ token: 'one' });
    await open();
    for (let count = 0; count < 5; count++) await minute();
    expect(runs()).toBe(1);
  });

  it('is asked for again once after a 401', async () => {
    prints({ token: 'one' });
    await open();
    prints({ token: 'two' });
    expect(await access.onUnauthorized('Bearer one')).toBe(true);
    expect(access.authorization()).toBe('Bearer two');
    expect(await access.onUnauthorized('Bearer two')).toBe(false);
    expect(runs()).toBe(2);
  });

  it('makes a retry worth while after a 401 when it is a new certificate', async () => {
    const [first, second] = [authority.issue('one', 'DNS:one'), authority.issue('two', 'DNS:two')];
    prints({ clientCertificateData: first.cert, clientKeyData: first.key });
    await open();
    prints({ clientCertificateData: second.cert, clientKeyData: second.key });
    expect(await access.onUnauthorized(undefined)).toBe(true);
    expect(access.tls().cert).toBe(second.cert);
  });

  it('stays when the plugin fails later, which is told and tried again', async () => {
    prints({ token: 'one', expirationTimestamp: expiringIn(100) });
    await open();
    plugin('echo "no session" >&2; exit 3');
    await minute(() => lines.length > 0);
    expect(access.authorization()).toBe('Bearer one');
    expect(lines).toMatchObject([{ msg: 'credentials for the API server could not be read again' }]);
    expect(JSON.stringify(lines)).toContain('plugin.sh ended with exit code 3: no session');
    plugin('cat output');
    prints({ token: 'two' });
    await minute(has('two'));
  });
});

describe('a plugin that is broken', () => {
  it.each([
    ['fails', 'echo "who are you?" >&2; exit 7', 'ended with exit code 7: who are you?'],
    ['dies', 'kill -9 $$', 'was terminated by SIGKILL'],
    ['prints nothing', 'true', 'it printed nothing'],
    ['prints no JSON', 'echo "secret garbage"', 'its output is not JSON'],
    ['prints a list', 'echo "[]"', 'its output: document: must be a mapping'],
    ['prints null', 'echo null', 'its output: document: must be a mapping'],
    ['prints for ever', 'yes secret', 'printed more than 1 MiB'],
  ])('is named with the reason when it %s', async (_what, script, reason) => {
    plugin(script);
    const message = await failureOf(load());
    expect(message).toContain(`${dir.path}/config: users[admin].user.exec: gives no credential: `);
    expect(message).toContain(`${dir.path}/plugin.sh`);
    expect(message).toContain(reason);
    expect(message).not.toContain('secret');
  });

  it.each<[string, object, object, string]>([
    ['no status', {}, { status: undefined }, 'neither a token nor a client certificate'],
    ['a token that is a number', { token: 5 }, {}, 'its output: status.token: must be a string'],
    ['a token with a line break', { token: 'se\ncret' }, {}, 'characters that are not allowed'],
    ['a certificate without its key', { clientCertificateData: 'x' }, {}, 'not both'],
    ['a time that is none', { token: 'secret', expirationTimestamp: 'soon' }, {}, 'expirationTimestamp in its output'],
    ['another kind', { token: 'secret' }, { kind: 'Secret' }, 'is not an ExecCredential'],
    ['another version', { token: 'secret' }, { apiVersion: `${API_VERSION}beta1` }, `is not of ${API_VERSION}`],
  ])('is refused when it prints %s', async (_what, status, more, reason) => {
    plugin('cat output');
    prints(status, more);
    const message = await failureOf(load());
    expect(message).toContain(reason);
    expect(message).not.toContain('secret');
  });

  it('is not waited for longer than a minute, and ends with all that it has started', async () => {
    plugin("sh -c 'echo $$ > pid; exec sleep 600'");
    const loading = failureOf(load());
    const pid = await until(() => {
      const path = join(dir.path, 'pid');
      return existsSync(path) ? Number(readFileSync(path, 'utf8')) || undefined : undefined;
    }, 'the plugin');
    clock.advance(60_000);
    expect(await loading).toContain('plugin.sh did not finish within 60 s');
    await until(() => !isAlive(pid), 'the end of the plugin');
  });

  it('is named with the hint of the kubeconfig when it is not installed', async () => {
    const message = await failureOf(load({ command: 'no-such-plugin', installHint: 'apt install it' }));
    expect(message).toContain('no-such-plugin cannot be started: spawn no-such-plugin ENOENT\napt install it');
  });
});

/** A zombie, which nobody has waited for in a container without an init, counts as ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
