import { readFile } from 'node:fs/promises';
import { ControllerProcess, type World } from './world.ts';

const RBAC = new URL('../../deploy/platform/rbac.yaml', import.meta.url);
const NAMESPACE = 'koupleless-system';

/** The platform as `deploy/platform` starts it: in processes of its own, with its own rights. */
export class Platform {
  readonly #world: World;
  readonly #processes: ControllerProcess[] = [];

  private constructor(world: World) {
    this.#world = world;
  }

  static async install(world: World): Promise<Platform> {
    await world.controlPlane.apply(await readFile(RBAC, 'utf8'));
    return new Platform(world);
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
      ...env,
    });
    this.#processes.push(process);
    return process;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop('SIGKILL')));
  }
}
