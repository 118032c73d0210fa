import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Broker, startBroker } from '../../samples/broker/broker.ts';
import { type JarServer, startJarServer } from '../../samples/jvm/jar-server.ts';
import { ensureJars, type Jars, type ModuleName, moduleJarOf, type Version } from '../../samples/jvm/jars.ts';
import { JvmBase } from '../../samples/jvm/jvm-base.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from './eventually.ts';
import { type ModuleOptions, modulePod } from './manifests.ts';
import { eventsOf, findNode, isSchedulable, pods } from './observe.ts';
import { createPod, readyPod, removePod } from './pod-life.ts';
import { startWorld } from './start-world.ts';
import type { ControllerProcess, World } from './world.ts';

const TOKEN = 'e2e-token-of-bases';

export interface JavaBaseOptions {
  readonly tunnel: 'http' | 'mqtt';
  readonly jvmFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A control plane, a controller with both tunnels, a store of jars, and real JVMs. */
export class JavaWorld {
  readonly world: World;
  readonly controller: ControllerProcess;
  readonly jars: Jars;
  readonly jarServer: JarServer;
  readonly #broker: Broker;
  readonly #controllerUrl: string;
  /** For what a test writes; it goes with this world. */
  readonly directory: string;
  readonly #bases: JvmBase[] = [];

  private constructor(parts: {
    world: World;
    controller: ControllerProcess;
    jars: Jars;
    jarServer: JarServer;
    broker: Broker;
    controllerUrl: string;
    directory: string;
  }) {
    this.world = parts.world;
    this.controller = parts.controller;
    this.jars = parts.jars;
    this.jarServer = parts.jarServer;
    this.#broker = parts.broker;
    this.#controllerUrl = parts.controllerUrl;
    this.directory = parts.directory;
  }

  /** The transport of the world is HTTP; MQTT comes beside it. `env`: further variables of the controller. */
  static async start(env: Readonly<Record<string, string>> = {}): Promise<JavaWorld> {
    const jars = await ensureJars();
    const world = await startWorld();
    const broker = await startBroker();
    const controller = await world.startController({
      ENABLE_MQTT_TUNNEL: 'true',
      MQTT_BROKER: '127.0.0.1',
      MQTT_PORT: String(broker.port),
      HTTP_TUNNEL_TOKEN: TOKEN,
      NAME_BASE_PODS: 'true',
      ...env,
    });
    for (const tunnel of ['mqtt_tunnel_provider', 'http_tunnel_provider']) {
      await controller.line((line) => line.msg === 'tunnel is up' && line.tunnel === tunnel);
    }
    return new JavaWorld({
      world,
      controller,
      jars,
      broker,
      controllerUrl: await world.controllerUrl(),
      jarServer: await startJarServer(jars.directory),
      directory: await mkdtemp(join(tmpdir(), 'java-world-')),
    });
  }

  /** How a base finds the controller. */
  get links() {
    return { controllerUrl: this.#controllerUrl, token: TOKEN, brokerUrl: this.#broker.url };
  }

  get admin(): World['admin'] {
    return this.world.admin;
  }

  /** Resolves when each of them is a Node that the scheduler may use; in the order of their names. */
  async startBases(wanted: Readonly<Record<string, JavaBaseOptions>>): Promise<JvmBase[]> {
    const starting = Object.entries(wanted).map(async ([identity, { tunnel, jvmFlags = [], env = {} }]) => {
      const link =
        tunnel === 'http'
          ? { controllerUrl: this.#controllerUrl, token: TOKEN }
          : { brokerUrl: this.#broker.url, env: this.world.env };
      const base = await JvmBase.prepare({
        program: this.jars.baseProgram,
        identity,
        directory: this.directory,
        link,
        jvmFlags,
        env,
      });
      this.#bases.push(base); // before it runs: `stop` has to find one that does not come up
      await base.run();
      return base;
    });
    const bases = await Promise.all(starting);
    for (const base of bases) await this.schedulable(base);
    return bases;
  }

  async schedulable({ identity }: JvmBase): Promise<void> {
    await eventually(async () => {
      const node = await findNode(this.admin, identity);
      expect(node && isSchedulable(node), `${nodeNameOf(identity)} is schedulable`).toBe(true);
    });
  }

  /** A sample module for a manifest; its jar comes over http, or from the file system of the bases. */
  module(name: ModuleName, version: Version = '1.0.0', from: 'http' | 'file' = 'http'): ModuleOptions {
    const jar = moduleJarOf(name, version);
    return {
      name,
      version,
      image: from === 'http' ? this.jarServer.urlOf(jar) : `file://${this.jars.directory}/${jar}`,
    };
  }

  /** A Pod of these modules on this base. */
  async create(name: string, { identity }: Pick<JvmBase, 'identity'>, ...modules: ModuleOptions[]): Promise<void> {
    await createPod(this.admin, modulePod(name, modules, { nodeName: nodeNameOf(identity) }));
  }

  ready(name: string, timeoutMs?: number): Promise<PodObject> {
    return readyPod(this.admin, name, timeoutMs);
  }

  remove(name: string): Promise<void> {
    return removePod(this.admin, name);
  }

  /** Resolves with what a Pod says when it waits for this reason, from a watch: nothing is missed between two looks. */
  async waitingMessage(name: string, reason: string): Promise<string> {
    const seen: string[] = [];
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const path = `/api/v1/namespaces/default/pods?fieldSelector=metadata.name=${name}`;
    const watch = await this.admin.watch(path, ({ object }) => {
      const waiting = (object as PodObject).status?.containerStatuses?.[0]?.state?.waiting;
      seen.push(`${waiting?.reason}: ${waiting?.message}`);
      if (waiting?.reason === reason) resolve(waiting.message ?? '');
    });
    const timer = setTimeout(() => reject(new Error(`${name} was never ${reason}, but ${seen.join('; ')}`)), 60_000);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      watch.stop();
    }
  }

  /** Resolves when there is a `Failed` event about the Pod that says so, with the reason at its begin. */
  async failedEvent(name: string, reason: string, says: string): Promise<void> {
    await eventually(async () => {
      const events = await eventsOf(this.admin, 'Pod', name);
      const messages = events.filter((event) => event.reason === 'Failed').map(({ message }) => message ?? '');
      expect(messages.filter((message) => message.startsWith(`${reason}: `)).join('\n')).toContain(says);
    });
  }

  /** Deletes what a test has left in the namespace, however it ended, and waits until no base has a module. */
  async clear(): Promise<void> {
    await this.admin.delete('/apis/apps/v1/namespaces/default/deployments');
    await this.admin.delete('/api/v1/namespaces/default/pods');
    await eventually(async () => expect((await pods(this.admin)).map(({ metadata }) => metadata.name)).toEqual([]));
    for (const base of this.#bases) await eventually(async () => expect(await base.modules()).toEqual([]));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#bases.map((base) => base.close()));
    await this.jarServer.stop();
    await this.world.stop();
    await this.#broker.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}
