import { setTimeout as delay } from 'node:timers/promises';
import { nodeNameOf } from '../../src/labels.ts';
import { type JarServer, startJarServer } from '../jvm/jar-server.ts';
import type { Jars } from '../jvm/jars.ts';
import { JvmBase } from '../jvm/jvm-base.ts';
import type { BaseLinks, Cast } from './cast.ts';
import type { BaseView } from './view.ts';

/** One over MQTT, the others over HTTP. */
export const JAVA_BASES = ['java-1', 'java-2', 'java-3'] as const;
/** The step that starts them. */
export const JVMS_READY = `${JAVA_BASES.length} JVMs become Ready Nodes: 2 over HTTP, 1 over MQTT`;
const OVER_MQTT: string = JAVA_BASES[2];
/** With a limit the Nodes show memory: the metaspace. */
const JVM_FLAGS = ['-XX:MaxMetaspaceSize=256m', '-XX:+ExitOnOutOfMemoryError'];
/** A base says nothing of its modules by itself. */
const LOOK_EVERY_MS = 300;

/** Real JVMs, with what their arklet last listed. */
export class JavaBases implements Cast {
  readonly #bases: readonly JvmBase[];
  /** Where bases fetch jars. */
  readonly jarServer: JarServer;
  readonly #onChange: () => void;
  readonly #modules = new Map<string, readonly string[]>();
  readonly #stopping = new AbortController();
  #looking: Promise<void> = Promise.resolve();

  private constructor(bases: readonly JvmBase[], jarServer: JarServer, onChange: () => void) {
    this.#bases = bases;
    this.jarServer = jarServer;
    this.#onChange = onChange;
  }

  static async prepare({ directory, env, brokerUrl, controllerUrl, token, onChange }: BaseLinks, jars: Jars) {
    const linkOf = (identity: string) => (identity === OVER_MQTT ? { brokerUrl, env } : { controllerUrl, token });
    const bases = JAVA_BASES.map((identity) =>
      JvmBase.prepare({ program: jars.baseProgram, identity, directory, link: linkOf(identity), jvmFlags: JVM_FLAGS }),
    );
    return new JavaBases(await Promise.all(bases), await startJarServer(jars.directory), onChange);
  }

  async start(): Promise<void> {
    await Promise.all(this.#bases.map((base) => base.run()));
    this.#looking = this.#look();
  }

  bases(): BaseView[] {
    return this.#bases.map(({ identity, tunnel, ip }) => ({
      identity,
      tunnel,
      ip,
      modules: this.#modules.get(identity) ?? [],
    }));
  }

  /** A page of the base of every Node that is given; all of them by default. */
  pages(path: string, nodes?: ReadonlySet<string>): { base: string; url: string }[] {
    return this.#bases
      .filter(({ identity }) => nodes?.has(nodeNameOf(identity)) ?? true)
      .map((base) => ({ base: base.identity, url: base.urlOf(path) }));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#looking;
    await Promise.all(this.#bases.map((base) => base.close()));
    await this.jarServer.stop();
  }

  async #look(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await Promise.all(this.#bases.map((base) => this.#lookAt(base)));
      await delay(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #lookAt(base: JvmBase): Promise<void> {
    const found = await base.modules().catch(() => undefined);
    if (found === undefined || found.join() === this.#modules.get(base.identity)?.join()) return;
    this.#modules.set(base.identity, found);
    this.#onChange();
  }
}
