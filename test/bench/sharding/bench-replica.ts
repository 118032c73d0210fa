import { releasePort, reservePort } from '../../../samples/control-plane/ports.ts';
import type { ControllerProcess, World } from '../../support/world.ts';
import type { Watched } from '../usage.ts';

const MEMBER_TOKEN = 'members-of-the-bench';

/** One controller of several, with nothing between it and the API server. */
export class BenchReplica implements Watched {
  /** Its CLIENT_ID. */
  readonly name: string;
  readonly process: ControllerProcess;
  /** Of its HTTP tunnel. */
  readonly httpPort: number;

  private constructor(name: string, process: ControllerProcess, httpPort: number) {
    this.name = name;
    this.process = process;
    this.httpPort = httpPort;
  }

  /** Does not wait for it to be a member. */
  static async launch(world: World, name: string, env: Readonly<Record<string, string>> = {}): Promise<BenchReplica> {
    const httpPort = await reservePort();
    const process = await world.launchController({
      IS_CLUSTER: 'true',
      CLIENT_ID: name,
      POD_NAMESPACE: 'koupleless-system',
      POD_IP: '127.0.0.1',
      HTTP_TUNNEL_LISTEN_PORT: String(httpPort),
      MEMBER_TOKEN,
      ...env,
    });
    return new BenchReplica(name, process, httpPort);
  }

  get pid(): number {
    const { pid } = this.process.child;
    if (pid === undefined) throw new Error(`${this.name} was never started`);
    return pid;
  }

  get isAlive(): boolean {
    const { exitCode, signalCode } = this.process.child;
    return exitCode === null && signalCode === null;
  }

  async untilUp(): Promise<void> {
    await this.process.line(({ msg }) => msg === 'tunnel is up');
  }

  /** Resolves when its process has ended. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.process.stop(signal);
    releasePort(this.httpPort);
  }
}
