import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { ApiClient, WatchEvent } from '../../samples/control-plane/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../samples/control-plane/control-plane.ts';
import { poll } from '../../samples/control-plane/poll.ts';
import { COMPONENT_NAMES, KUBERNETES_VERSION } from '../../samples/control-plane/versions.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const CONTROL_PLANE_MODULE = new URL('../../samples/control-plane/control-plane.ts', import.meta.url).href;
const CLI = fileURLToPath(new URL('../../samples/control-plane/cli.ts', import.meta.url));

const READER = `
apiVersion: v1
kind: ServiceAccount
metadata: { name: reader, namespace: team }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader, namespace: team }
rules:
  - { apiGroups: [''], resources: [pods], verbs: [list] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader, namespace: team }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects:
  - { kind: ServiceAccount, name: reader, namespace: team }
`;

const configMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});

let one: ControlPlane;
let other: ControlPlane;

beforeAll(async () => {
  [one, other] = await Promise.all([startControlPlane({ auditLog: true }), startControlPlane()]);
  await one.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } }]);
  await one.apply(READER);
});

afterAll(async () => {
  const directories = [one, other].map((controlPlane) => controlPlane.directory);
  await Promise.all([one.stop(), other.stop()]);
  for (const directory of directories) expect(await leftoversOf(directory)).toEqual([]);
});

describe('two control planes side by side', () => {
  it('share nothing', async () => {
    await one.admin.post(CONFIG_MAPS, configMap('only-in-one'));
    await expect(other.admin.get(`${CONFIG_MAPS}/only-in-one`)).rejects.toMatchObject({ statusCode: 404 });
    expect(one.server).not.toBe(other.server);
  });

  it('distrust each other', async () => {
    const kubeconfig = await other.kubeconfig({ user: 'admin' });
    const elsewhere = kubectl(kubeconfig, 'get', 'nodes', `--server=${one.server}`);
    await expect(elsewhere).rejects.toThrow('certificate signed by unknown authority');
  });
});

describe('kubectl', () => {
  it('finds the version that was asked for', async () => {
    const kubeconfig = await one.kubeconfig({ user: 'admin' });
    const version = JSON.parse(await kubectl(kubeconfig, 'version', '--output=json'));
    expect(version.serverVersion).toMatchObject({ gitVersion: KUBERNETES_VERSION, major: '1', minor: '35' });
  });

  it('is verified as a service account and may do what its role says, and nothing else', async () => {
    const kubeconfig = await one.kubeconfig({ serviceAccount: 'team/reader' });
    expect(parse(await readFile(kubeconfig, 'utf8')).clusters[0].cluster).not.toHaveProperty(
      'insecure-skip-tls-verify',
    );
    expect(await kubectl(kubeconfig, 'auth', 'whoami')).toContain('system:serviceaccount:team:reader');
    expect(await kubectl(kubeconfig, 'get', 'pods', '--namespace=team', '--output=name')).toBe('');
    await expect(kubectl(kubeconfig, 'get', 'pods', '--namespace=default')).rejects.toThrow('Forbidden');
  });

  it('is denied everything as a user without a role', async () => {
    const kubeconfig = await one.kubeconfig({ user: 'alice', groups: ['developers'] });
    await expect(kubectl(kubeconfig, 'get', 'nodes')).rejects.toThrow('User "alice" cannot list resource "nodes"');
  });
});

describe('identities', () => {
  it('gives a token as long as asked for', async () => {
    const kubeconfig = await one.kubeconfig({ serviceAccount: 'team/reader', expirationSeconds: 1200 });
    const { token } = parse(await readFile(kubeconfig, 'utf8')).users[0].user;
    const { exp, iat } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
    expect(exp - iat).toBe(1200);
  });

  it('names the service account that does not exist', async () => {
    await expect(one.kubeconfig({ serviceAccount: 'team/nobody' })).rejects.toThrow(
      'service account team/nobody does not exist',
    );
  });
});

describe('the controllers', () => {
  it('bring a Deployment to pods that wait for a node', async () => {
    const labels = { app: 'waiting' };
    await one.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'waiting' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
    const reasons = await poll(
      async () => {
        const pods = await one.admin.list('/api/v1/namespaces/default/pods?labelSelector=app%3Dwaiting');
        const conditions = pods.map((pod) => pod.status.conditions?.[0]?.reason);
        return conditions.length === 2 && conditions.every(Boolean) ? conditions : undefined;
      },
      { what: 'the scheduler to have seen both pods', timeoutMs: 30_000 },
    );
    expect(reasons).toEqual(['Unschedulable', 'Unschedulable']);
    await one.admin.delete('/apis/apps/v1/namespaces/default/deployments/waiting');
  });
});

describe('a watch', () => {
  it('shows what happens until it is stopped', async () => {
    const events: WatchEvent[] = [];
    const watch = await one.admin.watch(`${CONFIG_MAPS}?fieldSelector=metadata.name%3Dseen`, (event) =>
      events.push(event),
    );
    await one.admin.post(CONFIG_MAPS, configMap('seen'));
    await one.admin.mergePatch(`${CONFIG_MAPS}/seen`, { data: { a: 'b' } });
    await one.admin.delete(`${CONFIG_MAPS}/seen`);
    await poll(async () => events.length >= 3 || undefined, { what: 'three events', timeoutMs: 10_000 });
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    watch.stop();
    await watch.ended;
  });
});

describe('the request counts', () => {
  let client: ApiClient;
  const user = 'counted';

  beforeAll(async () => {
    client = await one.client({ user, groups: ['system:masters'] });
  });

  it('are exact by verb, resource and answer as soon as the answer is there', async () => {
    const mark = await one.mark();
    await client.post(CONFIG_MAPS, configMap('counted'));
    for (let i = 0; i < 25; i++) await client.get(`${CONFIG_MAPS}/counted`);
    await Promise.all(Array.from({ length: 25 }, () => client.list(CONFIG_MAPS)));
    await client.mergePatch('/api/v1/namespaces/team/status', { metadata: { labels: { a: 'b' } } });
    await client.get(`${CONFIG_MAPS}/missing`).catch(() => {});
    await client.post(CONFIG_MAPS, configMap('counted')).catch(() => {});
    await client.delete(`${CONFIG_MAPS}/counted`);

    const counts = await one.requestCounts({ user, since: mark });
    expect(counts.count()).toBe(55);
    const core = { user, group: '', resource: 'configmaps' };
    expect(counts.entries()).toEqual(
      expect.arrayContaining([
        { ...core, verb: 'get', code: 200, count: 25 },
        { ...core, verb: 'get', code: 404, count: 1 },
        { ...core, verb: 'list', code: 200, count: 25 },
        { ...core, verb: 'create', code: 201, count: 1 },
        { ...core, verb: 'create', code: 409, count: 1 },
        { ...core, verb: 'delete', code: 200, count: 1 },
        { ...core, resource: 'namespaces/status', verb: 'patch', code: 200, count: 1 },
      ]),
    );
  });

  it('count a watch once, when it opens', async () => {
    const mark = await one.mark();
    const watch = await client.watch(CONFIG_MAPS, () => {});
    const open = await one.requestCounts({ user, since: mark });
    watch.stop();
    await watch.ended;
    await client.get(CONFIG_MAPS);
    const closed = await one.requestCounts({ user, since: mark });
    expect([open.count({ verb: 'watch' }), closed.count({ verb: 'watch' }), closed.count()]).toEqual([1, 1, 2]);
  });

  it('count those that were denied, and those of nobody', async () => {
    const mark = await one.mark();
    const stranger = await one.client({ user: 'stranger' });
    await expect(stranger.list(CONFIG_MAPS)).rejects.toMatchObject({ statusCode: 403 });
    await expect(stranger.watch(CONFIG_MAPS, () => {})).rejects.toMatchObject({ statusCode: 403 });
    const counts = await one.requestCounts({ user: 'stranger', since: mark });
    expect(counts.entries().map(({ verb, code, count }) => [verb, code, count])).toEqual([
      ['list', 403, 1],
      ['watch', 403, 1],
    ]);
  });

  it('need the option', async () => {
    await expect(other.requestCounts()).rejects.toThrow('auditLog: true');
  });
});

describe('faults', () => {
  it('brings a killed API server back on the same port, with its data', async () => {
    const apiServer = other.component('kube-apiserver');
    await other.admin.post(CONFIG_MAPS, configMap('kept'));
    expect(await apiServer.stopProcess('SIGKILL')).toBe('killed by SIGKILL');
    await expect(other.admin.get(`${CONFIG_MAPS}/kept`)).rejects.toThrow();
    await apiServer.start();
    expect((await other.admin.get(`${CONFIG_MAPS}/kept`)).metadata.name).toBe('kept');
  });

  it('brings a killed etcd back, with its data', async () => {
    await other.admin.post(CONFIG_MAPS, configMap('kept-too'));
    await other.component('etcd').stopProcess();
    await other.component('etcd').start();
    const found = await poll(() => other.admin.get(`${CONFIG_MAPS}/kept-too`).catch(() => undefined), {
      what: 'the API server to reach etcd again',
      timeoutMs: 30_000,
    });
    expect(found.metadata.name).toBe('kept-too');
  });

  it('freezes and thaws an API server', async () => {
    const apiServer = other.component('kube-apiserver');
    apiServer.kill('SIGSTOP');
    const isStopped = async () =>
      /^State:\s+T/m.test(await readFile(`/proc/${apiServer.pid}/status`, 'utf8')) || undefined;
    await poll(isStopped, { what: 'the API server to stand still', timeoutMs: 10_000 });
    await expect(other.admin.request('GET', '/readyz', { timeoutMs: 500 })).rejects.toThrow('timeout');
    apiServer.kill('SIGCONT');
    expect(await other.admin.get('/readyz')).toBe('ok');
  });

  it('tells which component did not start, and why, and leaves nothing', async () => {
    const temporary = await mkdtemp(join(tmpdir(), 'control-plane-test-'));
    vi.stubEnv('TMPDIR', temporary);
    const starting = startControlPlane({ extraArgs: { 'kube-scheduler': ['--no-such-flag'] } });
    await expect(starting).rejects.toThrow(
      /^kube-scheduler ended before it was healthy.*unknown flag: --no-such-flag/s,
    );
    vi.unstubAllEnvs();
    await rmdir(temporary); // fails unless it is empty
    expect(await leftoversOf(temporary)).toEqual([]);
  });
});

describe('a supervisor that is killed itself', () => {
  it('leaves the clean-up to the owner, who also learns of it', async () => {
    const third = await startControlPlane();
    const exits = COMPONENT_NAMES.map((name) => third.component(name).waitForExit());
    process.kill(third.supervisorPid, 'SIGKILL');
    expect(await Promise.all(exits)).toEqual(COMPONENT_NAMES.map(() => 'the supervisor ended'));
    await expect(third.stop()).rejects.toThrow('supervisor ended with SIGKILL');
    await poll(async () => (await leftoversOf(third.directory)).length === 0 || undefined, {
      what: 'the components to be gone',
      timeoutMs: 10_000,
    });
  });
});

describe('an owner that ends', () => {
  it('by SIGKILL leaves no process and no file', async () => {
    const script = `
      const { startControlPlane } = await import(${JSON.stringify(CONTROL_PLANE_MODULE)});
      const { directory, supervisorPid } = await startControlPlane();
      console.log(JSON.stringify({ directory, supervisorPid }));`;
    const owner = spawnNode('--input-type=module', '--eval', script);
    const { directory, supervisorPid } = JSON.parse(await firstLineOf(owner));
    expect((await leftoversOf(directory)).length).toBe(COMPONENT_NAMES.length + 1); // and the directory
    owner.kill('SIGKILL');
    await poll(async () => (await leftoversOf(directory, supervisorPid)).length === 0 || undefined, {
      what: 'everything of the killed owner to be gone',
      timeoutMs: 10_000,
    });
  });

  it('by Ctrl-C at the command line stops everything first', async () => {
    const cli = spawnNode(CLI);
    const line = await firstLineOf(cli);
    const kubeconfig = line.replace(/^export KUBECONFIG=/, '');
    expect(await kubectl(kubeconfig, 'get', '--raw=/readyz')).toBe('ok');
    process.kill(-(cli.pid ?? 0), 'SIGINT'); // as a terminal does: to the whole group
    const [code] = await once(cli, 'exit');
    expect(code).toBe(0);
    expect(await leftoversOf(kubeconfig.replace(/\/kubeconfigs\/.*/, ''))).toEqual([]);
  });
});

async function kubectl(kubeconfig: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('kubectl', [`--kubeconfig=${kubeconfig}`, ...args]);
  return stdout;
}

/** With a process group of its own. */
function spawnNode(...args: string[]): ChildProcess {
  return spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
}

async function firstLineOf({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the child has no standard output');
  for await (const line of createInterface(stdout)) return line;
  throw new Error('the child has ended without a line');
}

/** The directory, the processes whose command lines name it, and the process `pid`, as far as they exist. */
async function leftoversOf(directory: string, pid?: number): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,stat=,args='], { maxBuffer: 1 << 24 });
  const processes = stdout.split('\n').filter((line) => {
    const [ownPid, state = ''] = line.trim().split(/\s+/);
    return !state.startsWith('Z') && (line.includes(directory) || ownPid === String(pid));
  });
  return existsSync(directory) ? [...processes, directory] : processes;
}
