import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { firstExternalAddress } from '../../samples/base-simulator/external-address.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { spawnGuarded } from '../../samples/control-plane/guard.ts';
import { releasePort, reservePort } from '../../samples/control-plane/ports.ts';
import { eventually } from '../support/eventually.ts';
import { JavaWorld } from '../support/java-world.ts';
import { findNode, isSchedulable } from '../support/observe.ts';
import { envOfPod } from '../support/rendered-pod.ts';

const SAMPLES = new URL('../../samples/java/', import.meta.url);
const STARTED_WITHIN_MS = 90_000;

let java: JavaWorld;
let webPort: number;
const running: ReturnType<typeof spawnGuarded>[] = [];

beforeAll(async () => {
  java = await JavaWorld.start();
  webPort = await reservePort();
});

afterEach(() => {
  for (const guard of running.splice(0)) guard.stdin.end();
});

afterAll(async () => {
  releasePort(webPort);
  await java?.stop();
});

/** A sample's objects in a namespace that enforces Pod Security `restricted`. */
async function applied(file: string, namespace: string, replace: Readonly<Record<string, string>>): Promise<void> {
  let text = await readFile(new URL(file, SAMPLES), 'utf8');
  for (const [from, to] of Object.entries(replace)) {
    expect(text, `${file} has it`).toContain(from);
    text = text.replaceAll(from, to);
  }
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await java.world.controlPlane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
  const objects = parseAllDocuments(text).map((document): KubeObject => document.toJS());
  await java.world.controlPlane.apply(
    objects.map((object) => ({ ...object, metadata: { ...object.metadata, namespace } })),
  );
}

/** That a controller of the cluster has made: the API server has taken it. */
function podOf(namespace: string, app: string): Promise<KubeObject> {
  return eventually(async () => {
    const found = await java.admin.list(`/api/v1/namespaces/${namespace}/pods?labelSelector=app%3D${app}`);
    expect(found).toHaveLength(1);
    return found[0];
  });
}

/** As the kubelet reports it. Pods of other cases that have ended do not count any more. */
async function report(pod: KubeObject, status: { phase: string; podIP?: string }): Promise<void> {
  const { namespace, name } = pod.metadata;
  await java.admin.mergePatch(`/api/v1/namespaces/${namespace}/pods/${name}/status`, { status });
}

/** What a kubelet would run: the command of the image, with the variables of the Pod. */
async function start(pod: KubeObject): Promise<ReturnType<typeof spawnGuarded>> {
  const env = await envOfPod(java.world.controlPlane, pod, { podIP: firstExternalAddress() });
  const dockerfile = await readFile(new URL('base/Dockerfile', SAMPLES), 'utf8');
  const [program = '', ...args]: string[] = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]');
  const directory = join(java.directory, pod.metadata.name);
  await mkdir(directory, { recursive: true });
  // Its address, and the directory that would be mounted at /tmp, are shared by all JVMs of this machine.
  const ofTheMachine = {
    SERVER_PORT: String(webPort),
    KOUPLELESS_ARKLET_HTTP_PORT: '0',
    JAVA_TOOL_OPTIONS: `${env.JAVA_TOOL_OPTIONS} -Djava.io.tmpdir=${directory}`,
  };
  const variables = Object.entries({ ...env, ...ofTheMachine }).map(([name, value]) => `${name}=${value}`);
  const command = [program, ...args].map((word) => (word === 'base.jar' ? java.jars.base : word));
  const guard = spawnGuarded('env', [...variables, ...command]);
  guard.stdout.resume();
  running.push(guard);
  return guard;
}

describe('a first base, from the manifests of samples/java', () => {
  it.each([
    {
      file: 'base/deployment-http.yaml',
      secretOf: ({ token }: JavaWorld['links']) => ['base-tunnel', { BASE_CONTROLLER_TOKEN: token }] as const,
      replaceOf: ({ controllerUrl }: JavaWorld['links']) => ({
        'http://module-controller.koupleless-system:7777': controllerUrl,
      }),
    },
    {
      file: 'base/deployment-mqtt.yaml',
      secretOf: () => ['base-mqtt', { BASE_MQTT_USERNAME: 'bases', BASE_MQTT_PASSWORD: 'any' }] as const,
      replaceOf: ({ brokerUrl }: JavaWorld['links']) => ({
        'ssl://mqtt.example.com:8883': brokerUrl.replace('mqtt://', 'tcp://'),
      }),
    },
  ])(
    '$file: is a Node with the name of its Pod, which it names too, serves a module, and says goodbye',
    async ({ file, secretOf, replaceOf }) => {
      const namespace = file.replace(/\W/g, '-').replace('-yaml', '');
      const replace = {
        ...replaceOf(java.links),
        'replicas: 3': 'replicas: 1',
        'value: dev': `value: ${java.world.env}`,
      };
      await applied(file, namespace, replace);
      const [name, stringData] = secretOf(java.links);
      await java.world.controlPlane.apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, namespace },
        stringData,
      });
      const pod = await podOf(namespace, 'base');
      await report(pod, { phase: 'Running', podIP: firstExternalAddress() });
      const guard = await start(pod);
      const identity: string = pod.metadata.name;
      await eventually(async () => {
        const node = await findNode(java.admin, identity);
        expect(node && isSchedulable(node)).toBe(true);
        // The limit of the metaspace, of which the base itself has a part: known with its first health.
        expect(node?.status?.capacity?.memory).toBe('256Mi');
      }, STARTED_WITHIN_MS);
      await java.create(`shop-${namespace}`, { identity }, java.module('shop'));
      await java.ready(`shop-${namespace}`);
      expect(await (await fetch(`http://127.0.0.1:${webPort}/shop/version`)).text()).toBe('1.0.0');
      await java.remove(`shop-${namespace}`);
      await eventually(async () => {
        const { annotations } = (await findNode(java.admin, identity))?.metadata ?? {};
        expect(annotations?.['platform.koupleless.io/base-pod']).toBe(`${namespace}/${identity}`);
      });
      await report(pod, { phase: 'Succeeded' });
      guard.stdin.write('TERM\n');
      await eventually(async () => expect(await findNode(java.admin, identity)).toBeUndefined());
    },
  );

  it('jar-store.yaml: has a Pod under Pod Security `restricted`', async () => {
    await applied('jar-store.yaml', 'jar-store', {});
    expect((await podOf('jar-store', 'jars')).spec.volumes[0].configMap.name).toBe('jars');
  });
});
