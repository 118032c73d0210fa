import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'undici';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { FeedClient, FeedFiles } from '../../support/feed-client.ts';
import { find } from '../../support/observe.ts';
import { Platform } from '../../support/platform.ts';
import { startTransport } from '../../support/transport.ts';
import { type ControllerProcess, type OwnWorld, startOwnWorld } from '../../support/world.ts';
import { inParallel } from '../in-parallel.ts';
import { poolOf } from '../scale/http-pool.ts';
import type { StageOptions } from '../suite.ts';
import type { Watched } from '../usage.ts';
import {
  BACKENDS,
  type BenchPod,
  type BenchService,
  GROUP,
  MIN_BASES,
  NAMESPACES,
  namespaceOf,
  nodeObject,
  nodeStatus,
  podObject,
  podOf,
  podStatus,
  serviceObject,
  servicesOf,
} from './objects.ts';

export const PLATFORM_USER = 'system:serviceaccount:koupleless-system:module-platform';
export const EXPORTS = '/apis/platform.koupleless.io/v1alpha1/exportservices';
const TOKEN = 'of-the-balancers-of-the-bench-0123456789';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/koupleless-system/leases/platform-export';
/** Of the bench: more connections would only make the API server wait for itself. */
const REQUESTS_AT_ONCE = 32;
const FED_WITHIN_MS = 120_000;
const ASK_EVERY_MS = 20;

/**
 * Nobody renews the Leases of these Nodes, so nothing may judge them; and what Kubernetes makes of Services is not what
 * is measured here.
 */
const CONTROLLERS = [
  '*',
  '-node-lifecycle-controller',
  '-taint-eviction-controller',
  '-endpoints-controller',
  '-endpointslice-controller',
  '-endpointslice-mirroring-controller',
].join(',');

/** One process of the platform. */
export interface ExportReplica extends Watched {
  readonly process: ControllerProcess;
  /** `https://127.0.0.1:port`. */
  readonly url: string;
  readonly client: FeedClient;
}

/** A control plane with Nodes, Pods and Services that nobody but the bench touches, and processes of the platform. */
export class ExportWorld {
  readonly world: OwnWorld;
  readonly services: readonly BenchService[];
  readonly bases: number;
  readonly files: FeedFiles;
  readonly #platform: Platform;
  readonly #pool: Pool;
  readonly #replicas: ExportReplica[] = [];
  #launched = 0;

  private constructor(
    parts: Pick<ExportWorld, 'world' | 'services' | 'bases' | 'files'> & { platform: Platform; pool: Pool },
  ) {
    this.world = parts.world;
    this.services = parts.services;
    this.bases = parts.bases;
    this.files = parts.files;
    this.#platform = parts.platform;
    this.#pool = parts.pool;
  }

  /** With everything in place, and without a process of the platform. */
  static async start({ bases, services = 1, onProgress }: StageOptions): Promise<ExportWorld> {
    if (bases < MIN_BASES) throw new Error(`--bases: at least ${MIN_BASES} are needed`);
    const world = await startOwnWorld(
      {
        auditLog: { users: [PLATFORM_USER] },
        extraArgs: { 'kube-controller-manager': [`--controllers=${CONTROLLERS}`] },
        onProgress,
      },
      { transport: await startTransport('http') },
    );
    try {
      const platform = await Platform.install(world);
      const { authority } = world.controlPlane;
      const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
      const files = await FeedFiles.write({ ...pair, ca: authority.certificate }, { [GROUP]: TOKEN });
      const credential = await world.controlPlane.credential({ user: 'bench', groups: ['system:masters'] });
      if (!('certificate' in credential)) throw new Error('a user has a certificate');
      const { certificate: cert, privateKey: key } = credential;
      const pool = poolOf(world.controlPlane.server, { ca: authority.certificate, cert, key }, REQUESTS_AT_ONCE);
      const started = new ExportWorld({ world, platform, pool, files, bases, services: servicesOf(services) });
      await started.#compile();
      const startedAt = performance.now();
      await started.#fill();
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      onProgress(`${services} Services, ${services * BACKENDS} Pods and ${bases} Nodes after ${seconds} s`);
      return started;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  get token(): string {
    return TOKEN;
  }

  /** Those that run, the oldest first. */
  get living(): ExportReplica[] {
    return this.#replicas.filter(({ process: { child } }) => child.exitCode === null && child.signalCode === null);
  }

  /** One more; resolves when its feed is served, if with 503. */
  async launch(): Promise<ExportReplica> {
    const name = `export-${this.#launched++}`;
    const process = await this.#platform.start(name, 'export', this.files.env);
    const port = await process.port('feed');
    const client = new FeedClient({ ca: this.files.ca, port, token: TOKEN });
    const replica = { name, pid: process.child.pid ?? Number.NaN, process, url: `https://127.0.0.1:${port}`, client };
    this.#replicas.push(replica);
    return replica;
  }

  /** Resolves when the feed of a replica answers with 200; that has to be all of it. */
  async untilFed({ name, client }: ExportReplica): Promise<void> {
    const endsAt = performance.now() + FED_WITHIN_MS;
    while (performance.now() < endsAt) {
      const { status, text } = await client.get(`?group=${GROUP}`);
      if (status === 200) {
        const backends = JSON.parse(text).map(backendCountOf) as number[];
        const isWhole = backends.length === this.services.length && backends.every((count) => count === BACKENDS);
        if (isWhole) return;
        throw new Error(`${name} answers with a part of the Services: ${backends.length}`);
      }
      await delay(ASK_EVERY_MS);
    }
    throw new Error(`${name} does not serve its feed after ${FED_WITHIN_MS / 1000} s`);
  }

  /** So many replicas run and serve. */
  async scaleTo(count: number): Promise<void> {
    while (this.living.length < count) await this.untilFed(await this.launch());
  }

  /** That which writes. */
  async leader(): Promise<ExportReplica> {
    const { spec } = await this.world.admin.get(LEASE);
    const found = this.living.find(({ name }) => spec.holderIdentity?.startsWith(`${name}_`));
    if (found === undefined) throw new Error(`no replica leads: ${spec.holderIdentity}`);
    return found;
  }

  /** Resolves when the API server has answered. */
  async setReady(service: BenchService, pod: BenchPod, isReady: boolean): Promise<void> {
    await this.#send('PATCH', `${podsPath(service)}/${pod.name}/status`, { status: podStatus(pod, isReady) });
  }

  /** Bound, and not Ready yet. */
  async createPod(service: BenchService, pod: BenchPod): Promise<void> {
    await this.#send('POST', podsPath(service), podObject(service, pod, this.world.env));
  }

  /** As a kubelet sees it: it is deleted from now on, and there until `removePod`. */
  async deletePod(service: BenchService, pod: BenchPod): Promise<void> {
    await this.#send('DELETE', `${podsPath(service)}/${pod.name}`, { gracePeriodSeconds: 30 });
  }

  async removePod(service: BenchService, pod: BenchPod): Promise<void> {
    await this.#send('DELETE', `${podsPath(service)}/${pod.name}`, { gracePeriodSeconds: 0 });
  }

  async setLabels({ namespace, name }: BenchService, labels: Record<string, string>): Promise<void> {
    await this.#send('PATCH', `/api/v1/namespaces/${namespace}/services/${name}`, { metadata: { labels } });
  }

  /** Rejects when the API server does not do it. */
  async #send(method: 'POST' | 'PATCH' | 'DELETE', path: string, body: object): Promise<void> {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await this.#pool.request({
      method,
      path,
      headers: { accept: 'application/json', 'content-type': contentType },
      body: JSON.stringify(body),
    });
    // Read also where nobody needs it: the connection is free only then.
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
  }

  async stop(): Promise<void> {
    await this.#pool.destroy();
    await this.#platform.stop();
    await this.files.remove();
    await this.world.stop();
  }

  /** The first start of a source has the compiler in it, which the image has used up already. */
  async #compile(): Promise<void> {
    const { process } = await this.launch();
    await process.stop('SIGTERM');
  }

  async #fill(): Promise<void> {
    const { admin, env } = this.world;
    const namespaces = Array.from({ length: NAMESPACES }, (_, number) => namespaceOf(number));
    await inParallel(namespaces, REQUESTS_AT_ONCE, async (name) => {
      await admin.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      while (!(await find<KubeObject>(admin, `/api/v1/namespaces/${name}/serviceaccounts/default`)))
        await delay(ASK_EVERY_MS);
    });
    await inParallel(
      Array.from({ length: this.bases }, (_, base) => base),
      REQUESTS_AT_ONCE,
      async (base) => {
        const node = nodeObject(base, env);
        await this.#send('POST', '/api/v1/nodes', node);
        await this.#send('PATCH', `/api/v1/nodes/${node.metadata.name}/status`, { status: nodeStatus(base) });
      },
    );
    await inParallel(this.services, REQUESTS_AT_ONCE, async (service) => {
      await this.#send('POST', `/api/v1/namespaces/${service.namespace}/services`, serviceObject(service));
      for (let place = 0; place < BACKENDS; place++) {
        const pod = podOf(service, place, 0, this.bases);
        await this.createPod(service, pod);
        await this.setReady(service, pod, true);
      }
    });
  }
}

function podsPath({ namespace }: BenchService): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

function backendCountOf({ ports }: { readonly ports: readonly { readonly backends: readonly unknown[] }[] }): number {
  return ports.reduce((sum, { backends }) => sum + backends.length, 0);
}
