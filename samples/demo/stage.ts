import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { firstExternalAddress } from '../base-simulator/external-address.ts';
import { type Broker, startBroker } from '../broker/broker.ts';
import { type ControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import type { BaseLinks, Cast } from './cast.ts';
import { ControllerProcess } from './controller-process.ts';
import type { BaseView, ClusterView } from './view.ts';
import { Watcher } from './watcher.ts';

const ROOT = new URL('../../', import.meta.url);
export const ENV = 'dev';
const NAMESPACE = 'koupleless-system';

/** Everything that plays a part: made one after the other by the first steps, ended by `stop`. */
export class Stage {
  #controlPlane: ControlPlane | undefined;
  #broker: Broker | undefined;
  #controller: ControllerProcess | undefined;
  #platform: ControllerProcess | undefined;
  #cast: Cast | undefined;
  #watcher: Watcher | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #stopFirst: (() => Promise<void>)[] = [];
  /** Between controller and bases over HTTP. */
  readonly #token = randomBytes(16).toString('hex');

  get controlPlane(): ControlPlane {
    if (this.#controlPlane === undefined) throw new Error('the control plane is not started');
    return this.#controlPlane;
  }

  /** undefined before it is started. */
  get controller(): ControllerProcess | undefined {
    return this.#controller;
  }

  /** All controllers that have been started. */
  get processes(): ControllerProcess[] {
    return [this.#controller, this.#platform].filter((process) => process !== undefined);
  }

  cluster(): ClusterView {
    return this.#watcher?.view() ?? { nodes: [], pods: [], deployments: [], moduleDeployments: [] };
  }

  /** What the bases themselves say, past the controller and the API server. */
  bases(): BaseView[] {
    return this.#cast?.bases() ?? [];
  }

  /** Called when the API server shows a change, or a base took or ended a command. Returns what removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** With the rights of `deploy/` applied. */
  async startControlPlane(onProgress: (line: string) => void): Promise<void> {
    this.#controlPlane = await startControlPlane({ onProgress });
    for (const name of ['namespace', 'rbac', 'confinement']) await this.apply(`deploy/${name}.yaml`);
    this.#watcher = new Watcher(this.controlPlane.admin, () => this.#changed());
    await this.#watcher.start();
  }

  async startBroker(): Promise<void> {
    this.#broker = await startBroker({ record: false });
  }

  /** Resolves when the controller can see bases over both tunnels. */
  async startController(): Promise<void> {
    const kubeconfig = await this.controlPlane.kubeconfig({ serviceAccount: `${NAMESPACE}/module-controller` });
    this.#controller = new ControllerProcess({
      name: 'controller',
      logPath: join(this.controlPlane.directory, 'module-controller.log'),
      env: {
        KUBECONFIG: kubeconfig,
        ENV,
        CLIENT_ID: 'demo',
        ENABLE_MQTT_TUNNEL: 'true',
        MQTT_BROKER: '127.0.0.1',
        MQTT_PORT: String(this.#broker?.port),
        ENABLE_HTTP_TUNNEL: 'true',
        HTTP_TUNNEL_LISTEN_PORT: '0',
        HTTP_TUNNEL_TOKEN: this.#token,
        // This machine only, even where it has no address but loopback.
        HTTP_TUNNEL_BASE_NETWORKS: `${firstExternalAddress()}/32`,
        HEALTH_PROBE_PORT: '0',
        METRICS_PORT: '0',
      },
    });
    await this.#controller.whenUp(['mqtt_tunnel_provider', 'http_tunnel_provider']);
  }

  /** The controllers of ModuleDeployments and Modules as `deploy/platform` has them: a process and rights of their own. */
  async startPlatform(): Promise<void> {
    for (const name of ['rbac', 'confinement']) await this.apply(`deploy/platform/${name}.yaml`);
    await this.apply('samples/catalog-opt-in.yaml');
    const kubeconfig = await this.controlPlane.kubeconfig({ serviceAccount: `${NAMESPACE}/module-platform` });
    this.#platform = new ControllerProcess({
      name: 'rollout controller',
      logPath: join(this.controlPlane.directory, 'module-platform.log'),
      env: {
        KUBECONFIG: kubeconfig,
        CONTROLLERS: 'rollout,catalog',
        ENV,
        CLIENT_ID: 'demo-platform',
        POD_NAMESPACE: NAMESPACE,
        HEALTH_PROBE_PORT: '0',
        METRICS_PORT: '0',
      },
    });
    await this.#platform.whenLeading();
    await this.#watcher?.startModuleDeployments();
  }

  async startBases<T extends Cast>(prepare: (links: BaseLinks) => Promise<T>): Promise<T> {
    const cast = await prepare({
      env: ENV,
      brokerUrl: this.#broker?.url ?? '',
      controllerUrl: `http://${firstExternalAddress()}:${await this.#controller?.heartbeatPort()}`,
      token: this.#token,
      directory: this.controlPlane.directory,
      onChange: () => this.#changed(),
    });
    this.#cast = cast;
    await cast.start();
    return cast;
  }

  /** Applies a manifest of this repository, after `edit`; resolves with the generation of its last object. */
  async apply(file: string, edit: (text: string) => string = (text) => text): Promise<number> {
    const objects = await this.controlPlane.apply(edit(await readFile(new URL(file, ROOT), 'utf8')));
    return objects.at(-1)?.metadata.generation ?? 0;
  }

  /** Called before anything is stopped. */
  stopFirst(stop: () => Promise<void>): void {
    this.#stopFirst.push(stop);
  }

  /** In an order in which nobody misses another; the last to go takes every file along. */
  async stop(): Promise<void> {
    await Promise.all(this.#stopFirst.map((stop) => stop()));
    await this.#watcher?.stop();
    await Promise.all(this.processes.map((process) => process.stop()));
    await this.#cast?.stop();
    await this.#broker?.stop();
    await this.#controlPlane?.stop();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
