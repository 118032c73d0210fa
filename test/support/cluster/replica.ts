import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { releasePort, reservePort } from '../../../samples/control-plane/ports.ts';
import { eventually } from '../eventually.ts';
import type { ControllerProcess, World } from '../world.ts';
import { type ProxyMode, TcpProxy } from './tcp-proxy.ts';

export const MEMBER_NAMESPACE = 'koupleless-system';
const MEMBER_TOKEN = 'members-of-the-test-cluster';

export interface ReplicaOptions {
  readonly world: World;
  readonly clientId: string;
  /** In `MEMBER_NAMESPACE`; the API server tells replicas apart by it. */
  readonly account: string;
  /** Over MQTT: the port of the broker. */
  readonly brokerPort: number | undefined;
  readonly overHttp: boolean;
}

/** One controller of several: its process, one after the other, and its own wires to the API server and the broker. */
export class Replica {
  readonly clientId: string;
  readonly account: string;
  readonly api: TcpProxy;
  /** Over MQTT only. */
  readonly broker: TcpProxy | undefined;
  /** Of its HTTP tunnel. */
  readonly httpPort: number;
  readonly #world: World;
  readonly #kubeconfig: string;
  readonly #overHttp: boolean;
  #process: ControllerProcess | undefined;

  private constructor(
    { world, clientId, account, overHttp }: ReplicaOptions,
    parts: { api: TcpProxy; broker: TcpProxy | undefined; httpPort: number; kubeconfig: string },
  ) {
    this.clientId = clientId;
    this.account = account;
    this.#world = world;
    this.#overHttp = overHttp;
    this.api = parts.api;
    this.broker = parts.broker;
    this.httpPort = parts.httpPort;
    this.#kubeconfig = parts.kubeconfig;
  }

  /** Its process is not started yet. */
  static async create(options: ReplicaOptions): Promise<Replica> {
    const { controlPlane } = options.world;
    const api = await TcpProxy.start(Number(new URL(controlPlane.server).port));
    const broker = options.brokerPort === undefined ? undefined : await TcpProxy.start(options.brokerPort);
    const original = await controlPlane.kubeconfig({ serviceAccount: `${MEMBER_NAMESPACE}/${options.account}` });
    const kubeconfig = await through(api, original);
    return new Replica(options, { api, broker, httpPort: await reservePort(), kubeconfig });
  }

  /** The newest process. */
  get process(): ControllerProcess {
    if (!this.#process) throw new Error(`${this.clientId} was never started`);
    return this.#process;
  }

  get isAlive(): boolean {
    const child = this.#process?.child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Does not wait for it to be a member. `env`: more variables of this process; `root`: the tree of another version. */
  async start(env: Record<string, string> = {}, root?: URL): Promise<ControllerProcess> {
    const variables = {
      IS_CLUSTER: 'true',
      CLIENT_ID: this.clientId,
      POD_NAMESPACE: MEMBER_NAMESPACE,
      POD_IP: '127.0.0.1',
      KUBECONFIG: this.#kubeconfig,
      WORKLOAD_MAX_LEVEL: '10',
      ...(this.broker ? { MQTT_PORT: String(this.broker.port) } : {}),
      ...(this.#overHttp ? { HTTP_TUNNEL_LISTEN_PORT: String(this.httpPort), MEMBER_TOKEN } : {}),
      ...env,
    };
    this.#process = await this.#world.launchController(variables, root);
    return this.#process;
  }

  /** Resolves when its readiness probe passes, as a rolling update waits for it. */
  async untilReady(): Promise<void> {
    const port = await this.process.port('probes');
    await eventually(async () => {
      const { status } = await fetch(`http://127.0.0.1:${port}/readyz`);
      if (status !== 200) throw new Error(`${this.clientId} is not ready: ${status}`);
    });
  }

  /** Ends its process; the exit code. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    return this.process.stop(signal);
  }

  freeze(): void {
    this.process.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.process.child.kill('SIGCONT');
  }

  /** All wires, or some of them. */
  async wires(mode: ProxyMode, which: readonly ('api' | 'broker')[] = ['api', 'broker']): Promise<void> {
    if (which.includes('api')) await this.api.become(mode);
    if (which.includes('broker')) await this.broker?.become(mode);
  }

  /** After its process has ended. */
  async stop(): Promise<void> {
    await this.api.stop();
    await this.broker?.stop();
    releasePort(this.httpPort);
  }
}

/** A copy of that kubeconfig file that leads through the proxy; its path. */
async function through(proxy: TcpProxy, original: string): Promise<string> {
  const config = parse(await readFile(original, 'utf8'));
  for (const { cluster } of config.clusters) cluster.server = `https://127.0.0.1:${proxy.port}`;
  const path = `${original}.proxied`;
  await writeFile(path, stringify(config, { lineWidth: 0 }), { mode: 0o600 });
  return path;
}
