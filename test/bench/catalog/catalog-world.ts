import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'undici';
import { forkFleet, type RemoteFleet } from '../../../samples/base-simulator/fleet-process.ts';
import { startMosquitto } from '../../../samples/broker/mosquitto.ts';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import type { RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import { COMPONENT_NAMES } from '../../../samples/control-plane/versions.ts';
import { type Remote, remoteOf } from '../../../samples/process/remote.ts';
import { collectionPathOf } from '../../../src/kube/resource.ts';
import { MODULES } from '../../../src/platform/catalog/module/module.ts';
import { MANY_PODS } from '../../support/cluster-settings.ts';
import { find, isSchedulable, nodes } from '../../support/observe.ts';
import { Platform } from '../../support/platform.ts';
import { MqttTransport } from '../../support/transport.ts';
import { type ControllerProcess, type OwnWorld, startOwnWorld } from '../../support/world.ts';
import { inParallel } from '../in-parallel.ts';
import { poolOf } from '../scale/http-pool.ts';
import { PROBED, type ProbeCalls } from '../scale/probe/probe.ts';
import type { StageOptions } from '../suite.ts';
import { type FloorCalls, startFloor } from './floor/floor-process.ts';
import type { ChangeSent } from './latencies.ts';
import { monotonicMs } from './monotonic.ts';
import { type BenchModule, moduleObject, modulesOf, NAMESPACES, namespaceOf } from './objects.ts';
import type { ChangeSeen } from './observer/change-book.ts';
import { type FillSeen, type ObserverCalls, startObserver } from './observer/observer.ts';
import { writeChanges } from './writer.ts';

const ACCOUNT = 'koupleless-system/module-platform';
const PLATFORM_USER = `system:serviceaccount:${ACCOUNT.replace('/', ':')}`;
const INSTALL_MS = 50;
/** Connections of the bench: more would only make the API server wait for itself. */
const REQUESTS_AT_ONCE = 32;
const ASK_EVERY_MS = 20;
/** Time between the announcements of two bases, ms. */
const ANNOUNCE_EACH_MS = 10;
const NODES_WITHIN_MS = 300_000;
const NODES_LOOK_MS = 1_000;
const READY_WITHIN_MS = 5_400_000;
const PROGRESS_EVERY_MS = 30_000;
/** A change that takes longer is lost: an API server that is overloaded may need minutes for a burst. */
const CHANGES_WITHIN_MS = 900_000;
const QUIET_FOR_MS = 5_000;
const QUIET_WITHIN_MS = 900_000;
/** A probe at a finer resolution costs more than what is measured at rest. */
const LOOP_DELAY_RESOLUTION_MS = 100;
/** Above the value that Modules are created with. */
const FIRST_CHANGE = 1_000;

/** What Kubernetes makes of Services is not what is measured here. */
const CONTROLLERS = ['*', '-endpoints-controller', '-endpointslice-controller', '-endpointslice-mirroring-controller'];

/** A process of the platform. */
interface PlatformProcess {
  readonly process: ControllerProcess;
  readonly probe: Remote<ProbeCalls>;
}

/** Writes an object; its answer. */
export type Send = (method: 'POST' | 'PUT', path: string, object: object) => Promise<KubeObject>;

/** How long Modules change, and how many in a second. */
export interface Burst {
  readonly seconds: number;
  readonly rate: number;
}

export interface Changes {
  readonly sent: readonly ChangeSent[];
  readonly seen: readonly ChangeSeen[];
}

/** A control plane, a Mosquitto, the core, bases, an observer, and the platform: `rollout` and `catalog` in a process each. */
export class CatalogWorld {
  readonly world: OwnWorld;
  readonly modules: readonly BenchModule[];
  readonly observer: Remote<ObserverCalls>;
  readonly fleet: RemoteFleet;
  readonly core: ControllerProcess;
  readonly #platform: Platform;
  readonly #pool: Pool;
  readonly #onProgress: (line: string) => void;
  readonly #rollout: PlatformProcess;
  #catalog: PlatformProcess | undefined;
  #floor: Remote<FloorCalls> | undefined;
  #launched = 0;
  #nextChange = FIRST_CHANGE;

  private constructor(
    parts: Pick<CatalogWorld, 'world' | 'modules' | 'observer' | 'fleet' | 'core'> & {
      readonly platform: Platform;
      readonly pool: Pool;
      readonly rollout: PlatformProcess;
      readonly catalog: PlatformProcess;
      readonly onProgress: (line: string) => void;
    },
  ) {
    this.world = parts.world;
    this.modules = parts.modules;
    this.observer = parts.observer;
    this.fleet = parts.fleet;
    this.core = parts.core;
    this.#platform = parts.platform;
    this.#pool = parts.pool;
    this.#rollout = parts.rollout;
    this.#catalog = parts.catalog;
    this.#onProgress = parts.onProgress;
  }

  /** A world with ready Nodes and the platform, and without a Module. */
  static async start({ bases, modules = 1, onProgress }: StageOptions): Promise<CatalogWorld> {
    const world = await startOwnWorld(
      {
        auditLog: { users: [PLATFORM_USER] },
        controllerAccounts: true,
        extraArgs: {
          ...MANY_PODS.extraArgs,
          // Wide limits: what is measured is work, not a queue.
          'kube-apiserver': ['--max-requests-inflight=3000', '--max-mutating-requests-inflight=2000'],
          'kube-controller-manager': [
            ...(MANY_PODS.extraArgs?.['kube-controller-manager'] ?? []),
            `--controllers=${CONTROLLERS.join()}`,
          ],
        },
        onProgress,
      },
      { transport: new MqttTransport(await startMosquitto()), deployFiles: ['flow-schemas.yaml'] },
    );
    const ends: (() => Promise<unknown>)[] = [() => world.stop()];
    try {
      const platform = await Platform.install(world, ['rollout', 'catalog']);
      ends.push(() => platform.stop());
      const credential = await world.controlPlane.credential({ user: 'bench', groups: ['system:masters'] });
      if (!('certificate' in credential)) throw new Error('a user has a certificate');
      const { server, certificateAuthority } = world.controlPlane;
      const tls = { ca: certificateAuthority, cert: credential.certificate, key: credential.privateKey };
      const pool = poolOf(server, tls, REQUESTS_AT_ONCE);
      ends.push(() => pool.destroy());
      await compile(platform);
      const rollout = await launch(platform, 'rollout', 'rollout-0');
      const catalog = await launch(platform, 'catalog', 'catalog-0');
      const core = await world.startController();
      const observer = await startObserver({ server, certificateAuthority, credential });
      ends.push(() => observer.stop());
      const { broker, env } = world;
      const behaviour = { installMs: INSTALL_MS, uninstallMs: 0, activateNewModule: true };
      const links = { brokerUrl: broker.url, sharesConnection: true, announce: false };
      const fleet = await forkFleet({ env, count: bases, ...links, ...behaviour });
      ends.push(() => fleet.stop());
      const all = modulesOf(bases * modules);
      const parts = { world, modules: all, observer, fleet, core, platform, pool, rollout, catalog, onProgress };
      await openNamespaces(world, platform);
      await fleet.announceOver(bases * ANNOUNCE_EACH_MS);
      await untilNodesReady(world, bases);
      onProgress(`${bases} Nodes are ready`);
      return new CatalogWorld(parts);
    } catch (error) {
      for (const end of ends.reverse()) await end();
      throw error;
    }
  }

  get catalog(): PlatformProcess {
    if (!this.#catalog) throw new Error('the catalog is stopped');
    return this.#catalog;
  }

  get floor(): Remote<FloorCalls> {
    if (!this.#floor) throw new Error('no floor runs');
    return this.#floor;
  }

  get rollout(): PlatformProcess {
    return this.#rollout;
  }

  /** The process that is measured now. */
  get subject(): Remote<ProbeCalls> | Remote<FloorCalls> {
    return this.#floor ?? this.catalog.probe;
  }

  /** Process ids of the parts that are reported. */
  get pids() {
    const { controlPlane } = this.world;
    const componentPid = (name: (typeof COMPONENT_NAMES)[number]): number =>
      controlPlane.component(name).pid ?? Number.NaN;
    return {
      subject: [this.subject.pid],
      rollout: [this.#rollout.probe.pid],
      core: [this.core.child.pid ?? Number.NaN],
      apiServer: [componentPid('kube-apiserver')],
      otherControlPlane: COMPONENT_NAMES.filter((name) => name !== 'kube-apiserver').map(componentPid),
      stage: [process.pid, this.observer.pid, this.fleet.pid],
    };
  }

  /** Creates all Modules; resolves when each has its Pod and is Ready. */
  async fill(): Promise<FillSeen & { readonly createdAt: number }> {
    const ready = this.observer.untilReady(this.modules.length, READY_WITHIN_MS);
    // Awaited below: until then a failure has no handler.
    ready.catch(() => {});
    const progress = setInterval(() => void this.#reportFill(), PROGRESS_EVERY_MS);
    try {
      await inParallel(this.modules, REQUESTS_AT_ONCE, (module) => this.#create(module));
      const createdAt = monotonicMs();
      return { ...(await ready), createdAt };
    } finally {
      clearInterval(progress);
    }
  }

  /** Changes Modules at the pace of a burst; resolves with what the observer has seen of them. */
  async change({ seconds, rate }: Burst): Promise<Changes> {
    const [from, count] = [this.#nextChange, seconds * rate];
    this.#nextChange += count;
    await this.observer.expectChanges(from, count);
    const sent = await writeChanges({ pool: this.#pool, modules: this.modules, from, count, rate });
    const seen = await this.observer.changesSeen(CHANGES_WITHIN_MS);
    return { sent, seen };
  }

  /** Starts the catalog in place of the floor, if it does not run. */
  async startCatalog(): Promise<void> {
    await this.#floor?.stop();
    this.#floor = undefined;
    this.#launched += 1;
    this.#catalog ??= await launch(this.#platform, 'catalog', `catalog-${this.#launched}`);
  }

  async stopCatalog(): Promise<void> {
    await this.#catalog?.process.stop('SIGTERM');
    this.#catalog = undefined;
  }

  /** Starts the floor in place of the catalog. */
  async startFloor(): Promise<void> {
    await this.stopCatalog();
    const credential = await this.world.controlPlane.credential({ serviceAccount: ACCOUNT });
    if (!('token' in credential)) throw new Error('a ServiceAccount has a token');
    const { server, certificateAuthority } = this.world.controlPlane;
    const { env } = this.world;
    this.#floor ??= await startFloor({ server, certificateAuthority, token: credential.token, env });
  }

  /** Requests of the platform and the floor, which have one account; without watches. */
  async requestsSince(since: RequestCounts): Promise<RequestCounts> {
    return (await this.allRequestsSince(since)).withoutWatches();
  }

  /** The same with watches. */
  allRequestsSince(since: RequestCounts): Promise<RequestCounts> {
    return this.world.controlPlane.requestCounts({ user: PLATFORM_USER, since });
  }

  /** Resolves when the platform has asked for nothing but its Leases for a while. */
  async untilQuiet(): Promise<void> {
    const deadline = monotonicMs() + QUIET_WITHIN_MS;
    for (;;) {
      const since = await this.world.controlPlane.mark();
      await delay(QUIET_FOR_MS);
      const others = withoutLeases(await this.requestsSince(since));
      if (others.count() === 0) return;
      if (monotonicMs() > deadline) throw new Error(`no rest: ${JSON.stringify(others.entries())}`);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#floor?.stop(), this.observer.stop(), this.fleet.stop(), this.#pool.destroy()]);
    await this.#platform.stop();
    await this.world.stop();
  }

  /** Writes for each item, as many at once as the API server takes without a queue. */
  async inParallel<T>(items: readonly T[], write: (item: T, send: Send) => Promise<void>): Promise<void> {
    await inParallel(items, REQUESTS_AT_ONCE, (item) => write(item, this.#send));
  }

  async #create(module: BenchModule): Promise<void> {
    await this.#send('POST', collectionPathOf(MODULES, module.namespace), moduleObject(module));
  }

  readonly #send: Send = async (method, path, object) => {
    const headers = { accept: 'application/json', 'content-type': 'application/json' };
    const response = await this.#pool.request({ method, path, headers, body: JSON.stringify(object) });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
    return JSON.parse(text) as KubeObject;
  };

  async #reportFill(): Promise<void> {
    const { modules, workloads, ready } = await this.observer.progress();
    this.#onProgress(`Modules: ${modules} created, ${workloads} with a workload, ${ready} Ready`);
  }
}

export function withoutLeases(requests: RequestCounts): RequestCounts {
  return requests.where(({ resource }) => resource !== 'leases');
}

/** Resolves when it leads. */
async function launch(platform: Platform, controllers: string, name: string): Promise<PlatformProcess> {
  const process = await platform.start(name, controllers, PROBED);
  const probe = remoteOf<ProbeCalls>(name, process.child);
  await probe.watchLoopDelay(LOOP_DELAY_RESOLUTION_MS);
  await process.line(({ msg }) => msg === 'started leading');
  return { process, probe };
}

/** The first start of a source has the compiler in it, which the image has used up already. */
async function compile(platform: Platform): Promise<void> {
  for (const controllers of ['rollout', 'catalog']) {
    const { process, probe } = await launch(platform, controllers, `${controllers}-compiles`);
    await probe.keepCompiled();
    await process.stop('SIGTERM');
  }
}

/** Namespaces that have opted in, and whose Pods get their ServiceAccount. */
async function openNamespaces({ admin }: OwnWorld, platform: Platform): Promise<void> {
  const names = Array.from({ length: NAMESPACES }, (_, number) => namespaceOf(number));
  await inParallel(names, REQUESTS_AT_ONCE, async (name) => {
    await admin.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await platform.optIn(name);
    while (!(await find<KubeObject>(admin, `/api/v1/namespaces/${name}/serviceaccounts/default`)))
      await delay(ASK_EVERY_MS);
  });
}

async function untilNodesReady({ admin }: OwnWorld, count: number): Promise<void> {
  const deadline = monotonicMs() + NODES_WITHIN_MS;
  for (;;) {
    const ready = (await nodes(admin)).filter(isSchedulable).length;
    if (ready >= count) return;
    if (monotonicMs() > deadline) throw new Error(`${ready} of ${count} Nodes are ready`);
    await delay(NODES_LOOK_MS);
  }
}
