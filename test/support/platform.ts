import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { messageOf } from '../../src/errors.ts';
import { renderedManifests } from '../manifests/rendered.ts';
import { eventually } from './eventually.ts';
import { ControllerProcess, type World } from './world.ts';

const NAMESPACE = 'koupleless-system';
const PROBE = {
  service: {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'probe', labels: { BCSGROUP: 'probe' } },
    spec: { ports: [{ port: 80 }] },
  },
  tenancy: {
    apiVersion: 'platform.koupleless.io/v1alpha1',
    kind: 'ModuleTenancy',
    metadata: { name: 'probe', namespace: 'default' },
    spec: { exportGroups: [] },
  },
} as const;
const PROBE_PATH = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduletenancies/probe';
/** Where `clientConfig.service` would lead: no Service is reachable here. */
const SERVICE = /service: \{ name: module-platform-webhook, namespace: koupleless-system, path: (\/\w+) \}/g;

function manifest(name: string): Promise<string> {
  return readFile(new URL(`../../deploy/platform/${name}.yaml`, import.meta.url), 'utf8');
}

/**
 * An API server that does not know a policy yet refuses nothing. One that has not read the parameters of a policy yet
 * refuses everything that the policy may be about. One that refuses what a tenancy forbids is past both.
 */
export async function untilPoliciesInForce({ admin, controlPlane }: World): Promise<void> {
  const answer = (): Promise<string> =>
    admin.post('/api/v1/namespaces/default/services?dryRun=All', PROBE.service).then(() => 'accepted', messageOf);
  await controlPlane.apply(PROBE.tenancy);
  await eventually(async () => expect(await answer()).toContain('may export to no group'));
  await admin.delete(PROBE_PATH);
  await eventually(async () => expect(await answer()).toBe('accepted'));
}

/** The platform as `deploy/platform` starts it: in processes of its own, with its own rights. */
export class Platform {
  readonly #world: World;
  readonly #processes: ControllerProcess[] = [];

  private constructor(world: World) {
    this.#world = world;
  }

  /** `controllers`: those with rights. Default: those that are on in `deploy/platform`. */
  static async install(world: World, controllers?: readonly string[]): Promise<Platform> {
    const rendered = controllers && (await renderedManifests(controllers));
    for (const name of ['module-tenancy', 'rbac', 'confinement']) {
      await world.controlPlane.apply(rendered?.[`deploy/platform/${name}.yaml`] ?? (await manifest(name)));
    }
    return new Platform(world);
  }

  /** Lets the platform write what the Modules of a namespace compose, as an admin does. */
  async optIn(namespace = 'default'): Promise<void> {
    const sample = await readFile(new URL('../../samples/catalog-opt-in.yaml', import.meta.url), 'utf8');
    await this.#world.controlPlane.apply(sample.replace('namespace: default', `namespace: ${namespace}`));
  }

  /** The policies of the API server, and the kind that they take their parameters from. */
  async installPolicies(): Promise<void> {
    for (const name of ['policies', 'base-proxy', 'confinement-scale'])
      await this.#world.controlPlane.apply(await manifest(name));
    await untilPoliciesInForce(this.#world);
  }

  /** The webhook, answered by what listens at `port` of this machine. */
  async installWebhook(port: number): Promise<void> {
    const text = await manifest('webhook');
    await this.#world.controlPlane.apply(text.replaceAll(SERVICE, `url: "https://127.0.0.1:${port}$1"`));
  }

  /** `controllers`: as in CONTROLLERS. Does not wait for it to lead. */
  async start(name: string, controllers: string, env: Record<string, string> = {}): Promise<ControllerProcess> {
    const kubeconfig = await this.#world.controlPlane.kubeconfig({ serviceAccount: `${NAMESPACE}/module-platform` });
    const process = new ControllerProcess({
      KUBECONFIG: kubeconfig,
      CONTROLLERS: controllers,
      ENV: this.#world.env,
      CLIENT_ID: name,
      POD_NAMESPACE: NAMESPACE,
      HEALTH_PROBE_PORT: '0',
      METRICS_PORT: '0',
      WEBHOOK_PORT: '0',
      WEBHOOK_HOSTS: '127.0.0.1',
      ...env,
    });
    this.#processes.push(process);
    return process;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop('SIGKILL')));
  }
}
