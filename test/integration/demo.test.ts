import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ApiClient, type KubeObject } from '../../samples/control-plane/api-client.ts';
import { applyManifests } from '../../samples/control-plane/manifests.ts';
import { poll } from '../../samples/control-plane/poll.ts';
import { Demo, leftoversOf } from '../support/demo-process.ts';
import { eventually } from '../support/eventually.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

async function clientOf(kubeconfigPath: string): Promise<ApiClient> {
  const { clusters, users } = parse(await readFile(kubeconfigPath, 'utf8')) as KubeObject;
  const decode = (text: string): string => Buffer.from(text, 'base64').toString();
  const [{ user }] = users;
  return new ApiClient({
    server: clusters[0].cluster.server,
    certificateAuthority: decode(clusters[0].cluster['certificate-authority-data']),
    credential: {
      certificate: decode(user['client-certificate-data']),
      privateKey: decode(user['client-key-data']),
    },
  });
}

describe('npm run demo -- --once', () => {
  it('sees every step succeed, exits 0 and leaves nothing', async () => {
    const demo = new Demo('--once', '--step-timeout', '30');
    const directory = await demo.directory();
    expect(await demo.exited, demo.output).toBe(0);
    expect(demo.steps()).toEqual([
      'control plane is up',
      'MQTT broker is up',
      'controller is ready',
      '5 bases become Ready Nodes: 3 over MQTT, 2 over HTTP',
      'Deployment shop 1.0.0 rolls out on 3 bases',
      'rolling update to 2.0.0, and 1.0.0 is uninstalled',
      'scale up to 5',
      'scale down to 2',
      'Deployment shop is deleted, and the module with it',
    ]);
    expect(await leftoversOf(directory)).toEqual([]);
  });

  it('with --rollout sees every step succeed, with the commands of a user, exits 0 and leaves nothing', async () => {
    const demo = new Demo('--rollout', '--once');
    const directory = await demo.directory();
    expect(await demo.exited, demo.output).toBe(0);
    expect(demo.steps()).toEqual([
      'control plane is up',
      'MQTT broker is up',
      'controller is ready',
      'rollout controller is ready, and has installed its CRD',
      '5 bases become Ready Nodes: 3 over MQTT, 2 over HTTP',
      'ModuleDeployment orders 1.0.0 rolls out on 4 bases',
      'update to 2.0.0: batch 1 of 2 replaces 2 Pods on their own bases, then the rollout waits',
      'batch 1 is confirmed, and batch 2 replaces the other Pods',
      'rollback to 1.0.0: batch 1 of 2 replaces 2 Pods, then the rollout waits',
      'batch 1 is confirmed, and all 4 Pods are of 1.0.0 again, on the bases where they began',
      'ModuleDeployment orders is deleted, and the module with it',
    ]);
    const confirm = 'kubectl annotate --overwrite md orders platform.koupleless.io/confirm-batch=1';
    expect(demo.output.match(/(?<=^\$ ).+$/gm)).toEqual([
      'kubectl apply -k deploy/platform',
      'kubectl apply -f samples/module-rollout.yaml',
      String.raw`sed 's/1\.0\.0/2.0.0/' samples/module-rollout.yaml | kubectl apply -f -`,
      confirm,
      `kubectl patch md orders --type merge -p '{"spec":{"rollbackTo":{}}}'`,
      confirm,
      'kubectl delete md orders',
    ]);
    expect(demo.output).toContain(`event WaitingConfirm: batch 1 is complete; to go on: ${confirm}\n`);
    expect(demo.output).toMatch(/ md orders: revision 2 █{10}░{10} 2 of 4 updated, 4 available, .*WaitingConfirm\n/);
    expect(await leftoversOf(directory)).toEqual([]);
  });

  it.each([
    [
      '--break silence-base',
      '5 bases become Ready Nodes: 3 over MQTT, 2 over HTTP',
      'node vnode.base-5: does not exist',
    ],
    ['--break refuse-jar', 'Deployment shop 1.0.0 rolls out on 3 bases', 'ZipException: zip END header not found'],
    [
      '--rollout --break refuse-jar',
      'ModuleDeployment orders 1.0.0 rolls out on 4 bases',
      'ZipException: zip END header not found',
    ],
  ])('fails with %s at the step that it breaks', async (flags, step, lastSeen) => {
    const demo = new Demo('--once', '--step-timeout', '20', ...flags.split(' '));
    const directory = await demo.directory();
    expect(await demo.exited, demo.output).toBe(1);
    const [before, failure = ''] = demo.output.split(`✗ ${step}: not seen within 20 s\n  last seen:\n`);
    expect(failure, before).toContain(lastSeen);
    expect(failure).toMatch(/the end of the controller's log:\n {4}\{"level":/);
    expect(await leftoversOf(directory)).toEqual([]);
  });

  it('leaves nothing when it is killed', async () => {
    const demo = new Demo('--once');
    const directory = await demo.directory();
    expect((await leftoversOf(directory)).join('\n')).toContain('src/main.js');
    demo.signal('SIGKILL');
    await demo.exited;
    await eventually(async () => expect(await leftoversOf(directory)).toEqual([]));
  });
});

describe('npm run demo -- --rollout', () => {
  let demo: Demo;
  let client: ApiClient;

  beforeAll(async () => {
    demo = new Demo('--rollout', '--step-timeout', '30');
    client = await clientOf(await demo.printed(/^ {2}export KUBECONFIG=(\S+)\n/m));
  });

  afterAll(async () => {
    demo.signal('SIGTERM');
    await client?.close();
    await demo.exited;
  });

  it('stays up with a cluster on which every sample comes to run, in a namespace of the restricted profile', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await client.mergePatch('/api/v1/namespaces/default', { metadata: { labels } });
    const directory = `${ROOT}samples/`;
    const files = (await readdir(directory)).filter((name) => name.endsWith('.yaml'));
    for (const file of files) await applyManifests(client, await readFile(directory + file, 'utf8'));
    const running = await poll(() => namesOfRunning(client, 18), { what: 'all modules to run', timeoutMs: 60_000 });
    const copies = { audit: 5, 'cart-and-coupon': 1, hello: 1, ledger: 2, orders: 4, price: 2, shop: 3 };
    expect(running).toEqual(Object.entries(copies).flatMap(([app, count]) => Array(count).fill(app)));
  });

  it('admits the controller of deploy/ to its namespace, under the restricted profile', async () => {
    const { stdout } = await run('kubectl', ['kustomize', `${ROOT}deploy`]);
    await applyManifests(client, stdout);
    const path = '/api/v1/namespaces/koupleless-system';
    const pod = await poll(
      async () => {
        const [created] = await client.list(`${path}/pods`);
        return created?.status.conditions ? created : undefined; // the scheduler has seen it
      },
      { what: 'the Pod of the controller', timeoutMs: 20_000 },
    );
    expect(pod.status).toMatchObject({ phase: 'Pending', conditions: [{ reason: 'Unschedulable' }] });
    expect(pod.spec).toMatchObject({ serviceAccountName: 'module-controller', priority: 2_000_000_000 });
    const events = await client.list(`${path}/events`);
    expect(events.filter(({ reason }) => reason === 'FailedCreate')).toEqual([]);
  });

  it('ends with Ctrl-C, exits 0 and leaves nothing', async () => {
    const directory = await demo.directory();
    demo.signal('SIGINT');
    expect(await demo.exited, demo.output).toBe(0);
    expect(await leftoversOf(directory)).toEqual([]);
  });
});

/** The apps of all module Pods, sorted, once there are `count` of them and each is Ready. */
async function namesOfRunning(client: ApiClient, count: number): Promise<string[] | undefined> {
  const pods = await client.list('/api/v1/pods?labelSelector=virtual-kubelet.koupleless.io%2Fcomponent%3Dmodule');
  const isReady = ({ metadata, status }: KubeObject): boolean =>
    metadata.deletionTimestamp === undefined &&
    status.conditions?.some(({ type, status }: KubeObject) => type === 'Ready' && status === 'True');
  if (pods.length !== count || !pods.every(isReady)) return undefined;
  return pods.map(({ metadata }) => metadata.labels.app).sort();
}
