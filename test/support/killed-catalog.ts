import { ApiFaultProxy, seededRandom } from './api-fault-proxy.ts';
import type { Platform } from './platform.ts';
import type { ControllerProcess, World } from './world.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/koupleless-system/leases/platform-catalog';

/** The catalog in a process of its own that is killed and started again. Its requests go through a proxy. */
export class KilledCatalog {
  readonly proxy: ApiFaultProxy;
  readonly #world: World;
  readonly #platform: Platform;
  #process: ControllerProcess | undefined;
  #starting: Promise<void> = Promise.resolve();
  #starts = 0;

  private constructor(world: World, platform: Platform, proxy: ApiFaultProxy) {
    this.#world = world;
    this.#platform = platform;
    this.proxy = proxy;
  }

  /** Resolves when it leads. The platform stops its process. */
  static async start(world: World, platform: Platform): Promise<KilledCatalog> {
    const { server, certificateAuthority } = world.controlPlane;
    const proxy = await ApiFaultProxy.start({ server, certificateAuthority, random: seededRandom(1) });
    const catalog = new KilledCatalog(world, platform, proxy);
    const first = await catalog.#startProcess();
    catalog.#process = first;
    await first.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
    return catalog;
  }

  /** Kills the process at once and starts another one. Its Lease is taken away, so that nobody waits until it ends. */
  kill(): void {
    const killed = this.#process;
    if (killed === undefined) return;
    this.#process = undefined;
    const ended = killed.stop('SIGKILL');
    this.#starting = this.#starting.then(async () => {
      await ended;
      await this.#world.admin.delete(LEASE).catch(() => {});
      // It may be killed before it says that it leads.
      this.#process = await this.#startProcess();
    });
  }

  /** Resolves when the process that was started last has begun. */
  whenStarted(): Promise<void> {
    return this.#starting;
  }

  async #startProcess(): Promise<ControllerProcess> {
    const direct = await this.#world.controlPlane.kubeconfig({ serviceAccount: 'koupleless-system/module-platform' });
    return this.#platform.start(`catalog-${++this.#starts}`, 'catalog', {
      KUBECONFIG: await this.proxy.kubeconfig(direct),
    });
  }
}
