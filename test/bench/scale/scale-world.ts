import { type ForkOptions, forkFleet, type RemoteFleet } from '../../../samples/base-simulator/fleet-process.ts';
import { startMosquitto } from '../../../samples/broker/mosquitto.ts';
import type { RequestCounts } from '../../../samples/control-plane/request-counts.ts';
import type { Remote } from '../../../samples/process/remote.ts';
import { nodeNameOf } from '../../../src/labels.ts';
import { childPidsOf } from '../../support/cost.ts';
import { createPods } from '../../support/create-pods.ts';
import { modulePod, moduleWorkload } from '../../support/manifests.ts';
import { MqttTransport } from '../../support/transport.ts';
import { type OwnWorld, startOwnWorld } from '../../support/world.ts';
import { DroppedMessages } from './dropped-messages.ts';
import type { NodesSeen } from './observer/node-book.ts';
import { type ObserverCalls, startObserver } from './observer/observer.ts';
import type { PodsSeen } from './observer/pod-book.ts';
import { GROUP_LABEL } from './observer/watch-line.ts';
import { SETTINGS, type Settings, type SettingsName } from './settings.ts';
import { launchController, SUBJECT_USERS, type Subject, type SubjectName, startSubject } from './subject.ts';

/** How long a simulated install takes. */
const INSTALL_MS = 50;

/** Long enough for a machine that is busy: what takes longer has failed. */
const NODES_WITHIN_MS = 120_000;
const PODS_WITHIN_MS = 600_000;

/** The group of the Pods of `place`. */
const PLACED = 'placed';
/** Those of a kubeadm cluster. */
const CONTROL_PLANE_USER = /^system:(apiserver|kube-scheduler|kube-controller-manager|serviceaccount:kube-system:.*)$/;
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

export interface ScaleWorldOptions {
  readonly subject: SubjectName;
  /** Default: the one of that name. */
  readonly startSubject?: (world: OwnWorld) => Promise<Subject>;
  readonly bases: number;
  /** Of each base. */
  readonly modules: number;
  readonly settings?: SettingsName;
  readonly onProgress: (line: string) => void;
}

/** A control plane, a Mosquitto, bases and watches in processes of their own, and one subject. */
export class ScaleWorld {
  readonly modules: number;
  readonly world: OwnWorld;
  /** Without those of `grow`. */
  readonly fleet: RemoteFleet;
  readonly observer: Remote<ObserverCalls>;
  readonly brokerPid: number;
  #subject: Subject;
  #bases: number;
  /** Of `grow`. */
  readonly #further: RemoteFleet[] = [];
  /** Bases that `place` has given their modules. */
  readonly #placed = new Set<string>();
  #announced: Promise<NodesSeen> | undefined;
  /** Rollouts until now; numbers their groups of Pods. */
  #rollouts = 0;
  #isLoaded = false;

  private constructor(
    options: ScaleWorldOptions,
    parts: Pick<ScaleWorld, 'world' | 'fleet' | 'observer' | 'subject' | 'brokerPid'>,
  ) {
    this.#bases = options.bases;
    this.modules = options.modules;
    this.world = parts.world;
    this.fleet = parts.fleet;
    this.observer = parts.observer;
    this.brokerPid = parts.brokerPid;
    this.#subject = parts.subject;
  }

  /** With bases that are connected and have said nothing yet. */
  static async start(options: ScaleWorldOptions): Promise<ScaleWorld> {
    const { controlPlane, broker, hasOwnConnections = false }: Settings = SETTINGS[options.settings ?? 'wide'];
    const mosquitto = await startMosquitto(broker === undefined ? {} : { settings: broker });
    const world = await startOwnWorld(
      { ...controlPlane, auditLog: true, onProgress: options.onProgress },
      { transport: new MqttTransport(mosquitto), deployFiles: ['flow-schemas.yaml'] },
    );
    const ends: (() => Promise<void>)[] = [() => world.stop()];
    try {
      const { server, certificateAuthority } = world.controlPlane;
      const credential = await world.controlPlane.credential({ user: 'observer', groups: ['system:masters'] });
      if (!('certificate' in credential)) throw new Error('a user has a certificate');
      const observer = await startObserver({ server, certificateAuthority, credential });
      ends.push(() => observer.stop());
      const start = options.startSubject ?? ((of) => startSubject(options.subject, of));
      const subject = await start(world);
      ends.push(() => subject.kill());
      const fleet = await fleetOf(world, { count: options.bases, sharesConnection: !hasOwnConnections });
      ends.push(() => fleet.stop());
      const [brokerPid = Number.NaN] = childPidsOf(mosquitto.guardPid ?? Number.NaN);
      return new ScaleWorld(options, { world, fleet, observer, subject, brokerPid });
    } catch (error) {
      for (const end of ends.reverse()) await end();
      throw error;
    }
  }

  get subject(): Subject {
    return this.#subject;
  }

  /** How long the install of a Pod takes; 0 for a subject that knows no bases and installs nothing. */
  get installMs(): number {
    return this.#subject.name === 'kwok' ? 0 : INSTALL_MS;
  }

  /** With those of `grow`. */
  get fleets(): readonly RemoteFleet[] {
    return [this.fleet, ...this.#further];
  }

  get bases(): number {
    return this.#bases;
  }

  /** Wanted in all. */
  get pods(): number {
    return this.bases * this.modules;
  }

  /** All modules are there, and none is on its way. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  /** The Pods of the newest rollout. */
  get group(): string {
    return `rollout-${this.#rollouts}`;
  }

  /** All bases at this moment, once; resolves when all Nodes are ready. */
  announce(): Promise<NodesSeen> {
    this.#announced ??= Promise.all([
      this.observer.untilNodesReady(this.bases, NODES_WITHIN_MS),
      this.fleet.announce(),
    ]).then(([seen]) => seen);
    return this.#announced;
  }

  /**
   * A new version of all modules, one Deployment each and a copy on each base; resolves when all of it is Ready, and
   * all of the version before has gone.
   */
  async rollOut(): Promise<{ ready: PodsSeen; gone: PodsSeen | undefined }> {
    const [before, isFirst] = [this.group, !this.#isLoaded];
    this.#rollouts += 1;
    this.#isLoaded = false;
    await Promise.all(
      Array.from({ length: this.modules }, (_, index) => {
        const deployment = this.#deployment(index);
        return isFirst
          ? this.world.admin.post(DEPLOYMENTS, deployment)
          : this.world.admin.mergePatch(`${DEPLOYMENTS}/${deployment.metadata.name}`, deployment);
      }),
    );
    const [ready, gone] = await Promise.all([
      this.observer.untilPods(this.group, 'ready', this.pods, PODS_WITHIN_MS),
      isFirst ? undefined : this.observer.untilPods(before, 'gone', this.pods, PODS_WITHIN_MS),
    ]);
    this.#isLoaded = true;
    return { ready, gone };
  }

  /** Further bases, at once or spread evenly; resolves when their Nodes are ready. */
  async grow(bases: number, { overMs = 0 }: { overMs?: number } = {}): Promise<NodesSeen> {
    const identityPrefix = `more-${this.#further.length}-`;
    const fleet = await fleetOf(this.world, { count: bases, identityPrefix, sharesConnection: true });
    this.#further.push(fleet);
    this.#bases += bases;
    const ready = this.observer.untilNodesReady(this.bases, overMs + NODES_WITHIN_MS);
    return (await Promise.all([ready, fleet.announceOver(overMs)]))[0];
  }

  /**
   * Modules on all bases of now that have none yet, bound from the start: the scheduler would take minutes over so many
   * Pods that must not meet. Resolves when all are Ready.
   */
  async place(): Promise<PodsSeen> {
    const identities = (await Promise.all(this.fleets.map((fleet) => fleet.identities()))).flat();
    const bases = identities.filter((identity) => !this.#placed.has(identity));
    for (const base of bases) this.#placed.add(base);
    const pods = bases.flatMap((base) =>
      Array.from({ length: this.modules }, (_, index) => {
        const name = moduleNameOf(index);
        const labels = { [GROUP_LABEL]: PLACED };
        return modulePod(`${name}-${base}`, [{ name }], { nodeName: nodeNameOf(base), labels });
      }),
    );
    await createPods(this.world.admin, pods);
    return this.observer.untilPods(PLACED, 'ready', this.#placed.size * this.modules, PODS_WITHIN_MS);
  }

  /** All modules; resolves when the last Pod has gone. */
  async deleteAll(): Promise<PodsSeen> {
    this.#isLoaded = false;
    await this.world.admin.delete(DEPLOYMENTS, { propagationPolicy: 'Background' });
    return this.observer.untilPods(this.group, 'gone', this.pods, PODS_WITHIN_MS);
  }

  /** SIGKILL, and at once a new one, whose start is not waited for; resolves with the wall clock at its start, ms. */
  async replaceController(): Promise<number> {
    if (this.#subject.name !== 'controller') throw new Error('only a controller takes over what is there');
    await this.#subject.kill();
    const startedAt = Date.now();
    this.#subject = await launchController(this.world);
    return startedAt;
  }

  /** Of the subject. */
  readonly requestsSince = async (since: RequestCounts): Promise<RequestCounts> =>
    (await this.world.controlPlane.requestCounts({ since })).where(({ user }) => SUBJECT_USERS.includes(user));

  /** Of the API server's own parts, of kube-scheduler, and of each controller of kube-controller-manager. */
  readonly controlPlaneRequestsSince = async (since: RequestCounts): Promise<RequestCounts> =>
    (await this.world.controlPlane.requestCounts({ since })).where(({ user }) => CONTROL_PLANE_USER.test(user));

  /** Installs that were executed since that mark of the fleet, beyond one for each Pod. */
  async extraInstalls(since: number): Promise<number> {
    const { installs } = await this.fleet.historySummary(since);
    return installs.reduce((sum, { count }) => sum + count, 0) - this.pods;
  }

  watchDroppedMessages(): Promise<DroppedMessages> {
    return DroppedMessages.watch(this.world.broker);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.fleets.map((fleet) => fleet.stop()), this.observer.stop(), this.#subject.kill()]);
    await this.world.stop();
  }

  #deployment(index: number) {
    const version = `1.0.${this.#rollouts}`;
    return moduleWorkload(moduleNameOf(index), [{ name: moduleNameOf(index), version }], {
      replicas: this.bases,
      labels: { [GROUP_LABEL]: this.group },
    });
  }
}

function moduleNameOf(index: number): string {
  return `module-${index}`;
}

/** Connected, and not announced. */
function fleetOf(
  { broker, env }: OwnWorld,
  options: Pick<ForkOptions, 'count' | 'identityPrefix' | 'sharesConnection'>,
): Promise<RemoteFleet> {
  // As docs/modules.md advises for bases over MQTT: without it a second version waits until the first one is deleted.
  const behaviour = { installMs: INSTALL_MS, uninstallMs: 0, activateNewModule: true };
  return forkFleet({ brokerUrl: broker.url, env, ...options, ...behaviour, announce: false });
}
