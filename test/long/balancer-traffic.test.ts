import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { releasePort, reservePort } from '../../samples/control-plane/ports.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { UNREACHABLE_AFTER_MS } from '../../src/vnode/liveness.ts';
import { eventually } from '../support/eventually.ts';
import { FeedClient, FeedFiles } from '../support/feed-client.ts';
import { moduleWorkload, podSpec, type WorkloadOptions } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { startWorld } from '../support/start-world.ts';
import { BalancerProcess } from '../support/traffic/balancer-process.ts';
import { BaseServers, localAddressOf } from '../support/traffic/base-servers.ts';
import { type FailedCall, NO_TARGET } from '../support/traffic/caller.ts';
import {
  type Allowance,
  byExcuse,
  CALLS_PER_SECOND,
  type Excuse,
  firstFailures,
  hostOf,
  PATHS,
  type Path,
  Phase,
  type PhaseResult,
  tableOf,
} from '../support/traffic/phase.ts';
import type { ControllerProcess, World } from '../support/world.ts';

const TOKEN = 'of-the-balancers-of-group-external-0123456789';
const BASES = 7;
const REPLICAS = 6;
const INSTALL_MS = 1_000;
const UNINSTALL_MS = 100;
/** The default of the controller; worlds of tests have 0. */
const PRE_STOP_SLEEP_SECONDS = 2;
const CANARY_CALLS = 10_000;
const PHASE_TIMEOUT_MS = 300_000;

/** Of phase 4. */
const TOLERATION_SECONDS = 20;
const AWAY_MS = (TOLERATION_SECONDS + 120) * 1000;
/** Defaults of kube-controller-manager and kube-scheduler, and of the agent over MQTT. */
const NODE_MONITOR_GRACE_MS = 50_000;
const LEASE_RENEW_MS = 10_000;
const SCHEDULER_BACKOFF_MS = 10_000;
const HEARTBEAT_MS = 10_000;
/** Bases are judged once a second. */
const JUDGED_EACH_MS = 1_000;
/** From the decision of a controller until clients of the API server know it. */
const KNOWN_WITHIN_MS = 1_000;

/** Until the balancers have reloaded several times. */
const LATER_CALLS = 10 * CALLS_PER_SECOND;

const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const MODULE_DEPLOYMENTS = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduledeployments';
const SERVICES = '/api/v1/namespaces/default/services';
const LEADER = '/apis/coordination.k8s.io/v1/namespaces/koupleless-system/leases/platform-export';
const NODE_LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const VERSION_LABEL = 'module.koupleless.io/version';
const REPLACING = { 'virtual-kubelet.koupleless.io/install-strategy': 'uninstallThenInstall' };

let world: World;
let core: ControllerProcess;
let fleet: Fleet;
let servers: BaseServers;
let platform: Platform;
let files: FeedFiles;
let balancer: BalancerProcess;
let port: number;
const feedPorts: number[] = [];
const platforms = new Map<string, ControllerProcess>();
const eventLoop = monitorEventLoopDelay({ resolution: 5 });
const results: (PhaseResult & Allowance)[] = [];
const timelines: string[] = [];

const NOTHING: Allowance = { excuse: () => undefined, atMost: 0 };

function startCore(): Promise<ControllerProcess> {
  return world.startController({ PRE_STOP_SLEEP_SECONDS: String(PRE_STOP_SLEEP_SECONDS) });
}

async function startPlatform(name: string, feedPort: number): Promise<void> {
  const process = await platform.start(name, 'export,rollout', { ...files.env, EXPORT_PORT: String(feedPort) });
  platforms.set(name, process);
  await process.port('feed');
}

async function leader(): Promise<string> {
  const { holderIdentity = '' } = (await world.admin.get(LEADER)).spec;
  return holderIdentity.replace(/_.*/, '');
}

interface Workload extends WorkloadOptions {
  /** Default: that of the Service. */
  readonly name?: string;
  readonly version?: string;
}

/** Pods of the module that is named like the Service, on as many bases. */
function workload(service: string, { name = service, version = '1.0.0', ...options }: Workload = {}): KubeObject {
  const labels = { team: service, [VERSION_LABEL]: version };
  return moduleWorkload(name, [{ name: service, version }], { replicas: REPLICAS, labels, ...options }) as KubeObject;
}

function asModuleDeployment(object: KubeObject): KubeObject {
  return { ...object, apiVersion: 'platform.koupleless.io/v1alpha1', kind: 'ModuleDeployment' };
}

function serviceOf(name: string, weights: Readonly<Record<string, string>> = {}): KubeObject {
  const annotations = {
    'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName: hostOf(name) } }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', labels: { BCSGROUP: 'external', ...weights }, annotations },
    spec: {
      selector: { team: name },
      // PORT_OFFSET of the balancer makes it the port of this test.
      ports: [{ name: 'http', port: 1, targetPort: servers.port, appProtocol: 'http' }],
    },
  };
}

/** Until exactly so many Pods of a Service exist, all of them Ready and of the version. */
async function served(service: string, count: number, version = '1.0.0'): Promise<void> {
  await eventually(async () => {
    const all = await pods(world.admin, `team=${service}`);
    expect(all.map(({ metadata }) => metadata.labels?.[VERSION_LABEL])).toEqual(Array(count).fill(version));
    expect(all.filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined)).toHaveLength(count);
  }, 120_000);
}

/** Until HAProxy and the EndpointSlices have so many backends. */
async function known(service: string, count: number, phase?: Phase): Promise<void> {
  await eventually(() => {
    expect(balancer.weightsOf(service)).toHaveLength(count);
    if (phase) expect(phase.picker.ready).toHaveLength(count);
  });
}

async function scale(name: string, replicas: number, phase: Phase): Promise<void> {
  await world.admin.mergePatch(`${DEPLOYMENTS}/${name}`, { spec: { replicas } });
  await served(name, replicas);
  await known(name, replicas, phase);
}

async function begin(name: string, service: string): Promise<Phase> {
  await known(service, (await pods(world.admin, `team=${service}`)).length);
  // Not the replica that the balancer follows, and that a phase kills.
  const feed = new FeedClient({ ca: files.ca, port: feedPorts[1] ?? 0, token: TOKEN });
  return Phase.begin({
    name,
    service,
    commands: fleet.history,
    admin: world.admin,
    feed,
    balancer,
    port,
    basePort: servers.port,
    localAddressOf,
  });
}

/** Ends a phase: no call has failed but those that are excused, and of these not more than allowed. */
async function end(
  phase: Phase,
  service: string,
  allowed: Partial<Record<Path, Allowance>> = {},
): Promise<PhaseResult[]> {
  const ended = (await phase.end()).map((result) => ({ ...result, ...(allowed[result.path] ?? NOTHING) }));
  results.push(...ended);
  if (ended.some(({ failures }) => failures.length > 0)) timelines.push(...phase.timeline(), '');
  const objects = [`${SERVICES}/${service}`];
  for (const { metadata } of await world.admin.list(DEPLOYMENTS)) objects.push(`${DEPLOYMENTS}/${metadata.name}`);
  for (const { metadata } of await world.admin.list(MODULE_DEPLOYMENTS))
    objects.push(`${MODULE_DEPLOYMENTS}/${metadata.name}`);
  await Promise.all(objects.map((path) => world.admin.delete(path)));
  await eventually(async () => expect(await pods(world.admin)).toEqual([]));
  for (const { path, failures, excuse, atMost } of ended) {
    expect(firstFailures({ failures: byExcuse(failures, excuse).get('') ?? [], excuse }), path).toEqual([]);
    expect(failures.length, path).toBeLessThanOrEqual(atMost);
  }
  return ended;
}

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  core = await startCore();
  fleet = await world.startFleet({
    count: BASES,
    activateNewModule: true,
    installMs: INSTALL_MS,
    uninstallMs: UNINSTALL_MS,
  });
  servers = await BaseServers.start(fleet, await reservePort());
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(BASES));
  const { authority } = world.controlPlane;
  const pair = authority.issue({ commonName: '127.0.0.1', hosts: ['127.0.0.1'] });
  files = await FeedFiles.write({ ...pair, ca: authority.certificate }, { external: TOKEN });
  for (const name of ['platform-1', 'platform-2']) {
    const feedPort = await reservePort();
    feedPorts.push(feedPort);
    await startPlatform(name, feedPort);
    // The balancer follows the first one, which leads.
    await eventually(async () => expect(await leader()).toBe('platform-1'));
  }
  port = await reservePort();
  balancer = await BalancerProcess.start({
    feedUrls: feedPorts.map((feedPort) => `https://127.0.0.1:${feedPort}`),
    token: TOKEN,
    ca: files.ca,
    portOffset: port - 1,
  });
  eventLoop.enable();
});

afterAll(async () => {
  const ms = (nanoseconds: number): string => (nanoseconds / 1e6).toFixed(0);
  console.log(
    [
      tableOf(results),
      `Timers of 5 ms in the test process, ms: p50 ${ms(eventLoop.percentile(50))}, p99 ${ms(eventLoop.percentile(99))}, max ${ms(eventLoop.max)}`,
      ...results
        .filter(({ failures }) => failures.length > 0)
        .flatMap((result) => [`${result.phase}, ${result.path}:`, ...firstFailures(result)]),
      ...timelines,
    ].join('\n'),
  );
  await balancer?.stop();
  servers?.stop();
  await platform?.stop();
  await files?.remove();
  await world?.stop();
  for (const reserved of [...feedPorts, port, servers?.port]) if (reserved !== undefined) releasePort(reserved);
});

describe(`${CALLS_PER_SECOND} calls a second through HAProxy, and as many through EndpointSlices: none fails`, () => {
  it(
    'while a Deployment is scaled to one Pod, and back',
    async () => {
      const name = 'scale';
      await world.controlPlane.apply([workload(name), serviceOf(name)]);
      await served(name, REPLICAS);
      const phase = await begin('1 scale 6, 1, 6', name);
      await scale(name, 1, phase);
      await scale(name, REPLICAS, phase);
      await end(phase, name);
    },
    PHASE_TIMEOUT_MS,
  );

  it(
    'while a canary gets 1 %',
    async () => {
      const name = 'canary';
      const on = (index: number) => ({
        nodeSelector: { 'kubernetes.io/hostname': nodeNameOf(fleet.bases[index]?.identity ?? '') },
      });
      await world.controlPlane.apply([
        workload(name, { name: 'canary-1', replicas: 1, spec: on(0) }),
        workload(name, { name: 'canary-2', replicas: 1, version: '2.0.0', spec: on(1) }),
        serviceOf(name, { 'BCS-WEIGHT-1.0.0': '99', 'BCS-WEIGHT-2.0.0': '1' }),
      ]);
      await eventually(() => expect(balancer.weightsOf(name)).toEqual([1, 99]));
      const phase = await begin('2 canary 99/1', name);
      await phase.further(CANARY_CALLS);
      const [haproxy] = await end(phase, name);
      expect(Math.abs((haproxy?.shares['2.0.0'] ?? 0) - 1)).toBeLessThan(1);
      console.log(`canary: ${JSON.stringify(haproxy?.shares)}`);
    },
    PHASE_TIMEOUT_MS,
  );

  it.each([
    { name: 'modules', kind: '3a ModuleDeployment', make: asModuleDeployment },
    { name: 'stock', kind: '3b Deployment', make: (object: KubeObject) => object },
  ])(
    'while a $kind is rolled with uninstallThenInstall',
    async ({ name, kind, make }) => {
      const versioned = (version: string) => make(workload(name, { version, annotations: REPLACING }));
      // The CRD may be new.
      await eventually(() => world.controlPlane.apply([versioned('1.0.0'), serviceOf(name)]));
      await served(name, REPLICAS);
      const phase = await begin(`${kind}, uninstallThenInstall`, name);
      await world.controlPlane.apply(versioned('2.0.0'));
      await served(name, REPLICAS, '2.0.0');
      await known(name, REPLICAS, phase);
      await end(phase, name);
    },
    PHASE_TIMEOUT_MS,
  );
});

/** A Node with a kubelet, as far as kube-controller-manager sees it. With none, it evicts nothing from silent Nodes. */
class Machine {
  readonly #timer: NodeJS.Timeout;

  private constructor() {
    this.#timer = setInterval(() => void this.#renew().catch(() => {}), LEASE_RENEW_MS / 2);
  }

  static async start(): Promise<Machine> {
    // In a zone of its own: the zone of the bases may be silent as a whole.
    const labels = { 'topology.kubernetes.io/zone': 'machines' };
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: new Date() }];
    await world.admin.post('/api/v1/nodes', { metadata: { name: 'machine', labels } });
    await world.admin.mergePatch('/api/v1/nodes/machine/status', { status: { conditions } });
    // A Lease that begins without a time counts as never renewed.
    await world.admin.post(NODE_LEASES, { metadata: { name: 'machine' }, spec: { renewTime: microTime() } });
    return new Machine();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #renew(): Promise<void> {
    await world.admin.mergePatch(`${NODE_LEASES}/machine`, { spec: { renewTime: microTime() } });
  }
}

function microTime(): string {
  return new Date().toISOString().replace('Z', '000Z');
}

describe('what fails is what a Service cannot avoid', () => {
  /** From when on kube-controller-manager may show the Pods of a killed core as not Ready. */
  const unreadyAfterMs = NODE_MONITOR_GRACE_MS - LEASE_RENEW_MS;
  const unreadyExcuse =
    (killedAt: number): Excuse =>
    ({ cause, startedAt }) =>
      cause === NO_TARGET && startedAt > killedAt + unreadyAfterMs ? 'no endpoint is ready' : undefined;
  const callsIn = (ms: number): number => (CALLS_PER_SECOND * ms) / 1000;

  it(
    'while no core runs until all Nodes are Unknown, and nobody is evicted',
    async () => {
      const name = 'unknown';
      await world.controlPlane.apply([workload(name), serviceOf(name)]);
      await served(name, REPLICAS);
      const phase = await begin('4a core away, no eviction', name);
      const killedAt = Date.now();
      await core.stop('SIGKILL');
      phase.note('core killed');
      await eventually(() => expect(phase.picker.ready).toEqual([]), 2 * NODE_MONITOR_GRACE_MS);
      await phase.further(LATER_CALLS);
      const startedAt = Date.now();
      core = await startCore();
      phase.note('core started');
      await served(name, REPLICAS);
      await known(name, REPLICAS, phase);
      const downMs = startedAt - killedAt - unreadyAfterMs + HEARTBEAT_MS + KNOWN_WITHIN_MS;
      await end(phase, name, { EndpointSlices: { excuse: unreadyExcuse(killedAt), atMost: callsIn(downMs) } });
      expect(phase.fewestListed).toBe(REPLICAS);
    },
    PHASE_TIMEOUT_MS,
  );

  it(
    `while no core runs for ${AWAY_MS / 1000} s, and Kubernetes evicts Pods meanwhile`,
    async () => {
      const name = 'away';
      const evicting = ['not-ready', 'unreachable'].map((key) => ({
        key: `node.kubernetes.io/${key}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: TOLERATION_SECONDS,
      }));
      const tolerations = [...podSpec([]).tolerations, ...evicting];
      const machine = await Machine.start();
      await world.controlPlane.apply([workload(name, { spec: { tolerations } }), serviceOf(name)]);
      await served(name, REPLICAS);
      const phase = await begin('4b core away, Pods evicted', name);
      const killedAt = Date.now();
      await core.stop('SIGKILL');
      phase.note('core killed');
      await eventually(() => expect(Date.now() - killedAt).toBeGreaterThan(AWAY_MS), AWAY_MS + 10_000);
      const evicted = (await pods(world.admin, `team=${name}`)).filter(
        ({ metadata }) => metadata.deletionTimestamp !== undefined,
      );
      phase.note(`${evicted.length} Pods evicted`);
      expect(phase.fewestListed).toBe(REPLICAS);
      core = await startCore();
      phase.note('core started');
      await served(name, REPLICAS);
      await known(name, REPLICAS, phase);
      machine.stop();
      // The evicted Pods go, and the scheduler may wait until a base is free of them before it binds the next ones.
      const replacedMs =
        PRE_STOP_SLEEP_SECONDS * 1000 + UNINSTALL_MS + SCHEDULER_BACKOFF_MS + INSTALL_MS + KNOWN_WITHIN_MS;
      await end(phase, name, {
        EndpointSlices: {
          excuse: unreadyExcuse(killedAt),
          atMost: callsIn(AWAY_MS - unreadyAfterMs + HEARTBEAT_MS + replacedMs),
        },
      });
      expect(evicted.length).toBeGreaterThan(0);
      expect(phase.fewestListed).toBeGreaterThan(0);
    },
    2 * PHASE_TIMEOUT_MS,
  );

  it(
    'while the leader of the platform is killed, and started again',
    async () => {
      const name = 'leader';
      await world.controlPlane.apply([workload(name), serviceOf(name)]);
      await served(name, REPLICAS);
      const phase = await begin('5 platform leader killed', name);
      const killed = await leader();
      await platforms.get(killed)?.stop('SIGKILL');
      phase.note(`${killed} killed`);
      await scale(name, REPLICAS / 2, phase);
      const feedPort = feedPorts[[...platforms.keys()].indexOf(killed)] ?? 0;
      await startPlatform(killed, feedPort);
      phase.note(`${killed} started`);
      await scale(name, REPLICAS, phase);
      await end(phase, name);
    },
    PHASE_TIMEOUT_MS,
  );

  it(
    'while a base is killed',
    async () => {
      const name = 'killed';
      await world.controlPlane.apply([workload(name), serviceOf(name)]);
      await served(name, REPLICAS);
      const [pod] = await pods(world.admin, `team=${name}`);
      const base = fleet.bases.find(({ identity }) => nodeNameOf(identity) === pod?.spec.nodeName);
      if (base === undefined) throw new Error('no base has the Pod');
      const address = localAddressOf(base.localIP);
      const phase = await begin('6 base killed', name);
      await phase.further(CALLS_PER_SECOND);
      const inFlight = Object.fromEntries(PATHS.map((path) => [path, phase.callers[path].inFlight]));
      const killedAt = Date.now();
      await servers.kill(base);
      phase.note(`${base.identity} killed`);
      // Its Pod is replaced when its Node is deleted.
      await eventually(async () => {
        const names = (await nodes(world.admin)).map(({ metadata }) => metadata.name);
        expect(names).not.toContain(nodeNameOf(base.identity));
      }, 120_000);
      await served(name, REPLICAS);
      await known(name, REPLICAS, phase);
      const noticedMs = UNREACHABLE_AFTER_MS + JUDGED_EACH_MS + KNOWN_WITHIN_MS;
      const wasInFlight = ({ startedAt }: FailedCall): string | undefined =>
        startedAt <= killedAt ? 'in flight at the kill' : undefined;
      const toItsEndpoint = (failure: FailedCall): string | undefined =>
        failure.address === address && failure.startedAt < killedAt + noticedMs
          ? 'to the dead base, until its silence counts'
          : undefined;
      // The picks are random: five standard deviations more than the mean.
      const picks = (CALLS_PER_SECOND * noticedMs) / 1000;
      const share = 1 / REPLICAS;
      const picked = picks * share + 5 * Math.sqrt(picks * share * (1 - share));
      await end(phase, name, {
        HAProxy: { excuse: wasInFlight, atMost: inFlight.HAProxy ?? 0 },
        EndpointSlices: {
          excuse: (failure) => wasInFlight(failure) ?? toItsEndpoint(failure),
          atMost: picked + (inFlight.EndpointSlices ?? 0),
        },
      });
    },
    PHASE_TIMEOUT_MS,
  );
});
