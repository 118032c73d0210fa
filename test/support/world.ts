import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { type Fleet, type FleetOptions, startFleet } from '../../samples/base-simulator/fleet.ts';
import type { Broker } from '../../samples/broker/broker.ts';
import type { MqttBroker } from '../../samples/broker/mqtt-broker.ts';
import type { ApiClient } from '../../samples/control-plane/api-client.ts';
import type { ControlPlane, ControlPlaneOptions } from '../../samples/control-plane/control-plane.ts';
import type { ControlPlaneAccess } from '../../samples/control-plane/control-plane-access.ts';
import { IMAGE_ENVIRONMENT, startArguments } from '../../samples/process/start-command.ts';
import { startDeployedControlPlane } from './control-planes/start.ts';
import { ended } from './ended.ts';
import { metricOf } from './metric-text.ts';
import { aedesOf, startTransport, TRANSPORT, type Transport } from './transport.ts';

const ROOT = new URL('../../', import.meta.url);
/** Another checkout whose controller is run: what it does, or costs, before and after a change. */
const { CONTROLLER_TREE } = process.env;
/** What Node has made of the TypeScript before: a start takes 0.5 s of CPU time less. Set for all tests. */
const { NODE_COMPILE_CACHE } = process.env;
const COMPILE_CACHE = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
export const CONTROLLER_USER = 'system:serviceaccount:koupleless-system:module-controller';

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** The controller as a process of its own, started as a user would, with the rights that `deploy/` gives it. */
export class ControllerProcess {
  readonly child: ChildProcess;
  readonly lines: LogLine[] = [];
  readonly exited: Promise<number | null>;
  readonly #watchers = new Set<() => void>();

  /**
   * `root`: the tree of another version. Default: that of CONTROLLER_TREE, else this one. `args`: of Node. Default:
   * those of `npm start` there.
   */
  constructor(
    env: Record<string, string>,
    root = CONTROLLER_TREE ? pathToFileURL(`${CONTROLLER_TREE}/`) : undefined,
    args: readonly string[] = startArguments(root),
  ) {
    // Ends with us, even when the test runner is killed.
    const preload = new URL('samples/demo/exit-with-parent.ts', ROOT).href;
    this.child = spawn(process.execPath, ['--import', preload, ...args], {
      env: { PATH: process.env.PATH ?? '', ...IMAGE_ENVIRONMENT, ...COMPILE_CACHE, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.exited = new Promise((resolve) => this.child.once('exit', (code) => resolve(code)));
    let rest = '';
    const take = (chunk: Buffer): void => {
      // To look at a failure: CONTROLLER_LOG=/tmp/controller.log npx vitest run …
      if (process.env.CONTROLLER_LOG) appendFileSync(process.env.CONTROLLER_LOG, chunk);
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) this.lines.push(parseLine(part));
      for (const watcher of this.#watchers) watcher();
    };
    this.child.stdout?.on('data', take);
    this.child.stderr?.on('data', take);
    void this.exited.then(() => {
      for (const watcher of this.#watchers) watcher();
    });
  }

  /** Resolves with the first line, old or new, that fits. Rejects when the process ends first, or after `timeoutMs`. */
  line(fits: (line: LogLine) => boolean, timeoutMs = 60_000): Promise<LogLine> {
    return new Promise((resolve, reject) => {
      const end = (act: () => void): void => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        act();
      };
      const look = (): void => {
        const found = this.lines.find(fits);
        if (found) end(() => resolve(found));
        else if (this.child.exitCode !== null) end(() => reject(new Error(`controller ended:\n${this.tail()}`)));
      };
      const timer = setTimeout(() => end(() => reject(new Error(`no such log line:\n${this.tail()}`))), timeoutMs);
      this.#watchers.add(look);
      look();
    });
  }

  /** The port of `probes` or `metrics`. */
  async port(server: string): Promise<number> {
    return Number((await this.line((line) => line.msg === 'listening' && line.server === server)).port);
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${await this.port('metrics')}/metrics`)).text();
  }

  /** The sum of the series of a metric whose labels contain all of `labels` as written. */
  async metric(name: string, ...labels: readonly string[]): Promise<number> {
    return metricOf(await this.metrics(), name, (own) => labels.every((label) => own.includes(label)));
  }

  tail(count = 30): string {
    return this.lines
      .slice(-count)
      .map((line) => JSON.stringify(line))
      .join('\n');
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.child.kill(signal);
    return this.exited;
  }
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { level: 'raw', msg: text };
  }
}

/** Borrowed, or of one's own. */
export type AnyControlPlane = ControlPlaneAccess & { stop(): Promise<void> };

export interface WorldOptions {
  /** Default: that of the vitest project. */
  readonly transport?: Transport;
  /** Default ENV of controllers and bases. Default `dev`. */
  readonly env?: string;
  /** Of `deploy/`, besides the namespace, the rights and the confinement. Default none. */
  readonly deployFiles?: readonly string[];
}

/** A control plane with `deploy/` applied, a transport, and what was started in them; `stop` ends it all. */
export class World<C extends AnyControlPlane = AnyControlPlane> {
  readonly controlPlane: C;
  readonly env: string;
  readonly #transport: Transport;
  readonly #controllers: ControllerProcess[] = [];
  readonly #fleets: Fleet[] = [];

  constructor(parts: { controlPlane: C; transport: Transport; env: string }) {
    this.controlPlane = parts.controlPlane;
    this.env = parts.env;
    this.#transport = parts.transport;
  }

  get admin(): ApiClient {
    return this.controlPlane.admin;
  }

  /** Over MQTT only. */
  get broker(): MqttBroker {
    return this.#transport.broker;
  }

  /** In the project `integration` only. */
  get aedes(): Broker {
    return aedesOf(this.#transport);
  }

  /** Resolves when the controller is ready: caches synced and the tunnel up. One for each ENV at a time. */
  async startController(env: Record<string, string> = {}): Promise<ControllerProcess> {
    const controller = await this.launchController(env);
    await controller.line((line) => line.msg === 'tunnel is up');
    return controller;
  }

  /** Does not wait for it to be ready. `root`: the tree of another version. */
  async launchController(env: Record<string, string> = {}, root?: URL): Promise<ControllerProcess> {
    const serviceAccount = 'koupleless-system/module-controller';
    const variables = {
      KUBECONFIG: env.KUBECONFIG ?? (await this.controlPlane.kubeconfig({ serviceAccount })),
      ENV: this.env,
      CLIENT_ID: 'controller-0',
      HEALTH_PROBE_PORT: '0',
      METRICS_PORT: '0',
      // Only tests of the sleep wait for it.
      PRE_STOP_SLEEP_SECONDS: '0',
      ...(await this.#transport.controllerEnv(env.ENV ?? this.env)),
      ...env,
    };
    const controller = new ControllerProcess(variables, root);
    this.#controllers.push(controller);
    return controller;
  }

  /** Over HTTP: where bases of this ENV post to. */
  async controllerUrl(): Promise<string> {
    const target = await this.#transport.fleetTarget(this.env);
    if (!('controllerUrl' in target)) throw new Error('this test needs HTTP: it belongs in another vitest project');
    return target.controllerUrl;
  }

  async startFleet(options: Partial<FleetOptions> = {}): Promise<Fleet> {
    const env = options.env ?? this.env;
    const target = await this.#transport.fleetTarget(env);
    const fleet = await startFleet({ ...target, env, installMs: 50, uninstallMs: 20, ...options });
    this.#fleets.push(fleet);
    return fleet;
  }

  async stop(): Promise<void> {
    const killed = this.#controllers.map((controller) => controller.stop('SIGKILL'));
    await ended('the controllers', Promise.all(killed));
    await ended('the bases', Promise.all(this.#fleets.map((fleet) => fleet.stop())));
    await ended('the transport', this.#transport.stop());
    await ended('the control plane', this.controlPlane.stop());
  }
}

export type OwnWorld = World<ControlPlane>;

/** On a control plane of its own: for arguments of its own, an audit log, or faults of its parts. */
export async function startOwnWorld(
  controlPlaneOptions: ControlPlaneOptions,
  options: WorldOptions = {},
): Promise<OwnWorld> {
  const transport = await transportOf(options);
  const controlPlane = await startDeployedControlPlane(controlPlaneOptions, options.deployFiles);
  return new World({ controlPlane, transport, env: options.env ?? 'dev' });
}

/** Before the control plane: it says at once what is not installed. */
export function transportOf({ transport }: WorldOptions): Promise<Transport> {
  return transport ? Promise.resolve(transport) : startTransport(TRANSPORT);
}

/** `namespace/name` of a Pod, or its API path. */
export function podPath(name: string, namespace = 'default'): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

export function nodePath(identity: string): string {
  return `/api/v1/nodes/vnode.${identity}`;
}

export function leasePath(identity: string): string {
  return `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/vnode.${identity}`;
}
