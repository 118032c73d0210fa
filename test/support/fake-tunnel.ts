import { ControllerError } from '../../src/errors.ts';
import { AddressPolicy } from '../../src/tunnel/address-policy.ts';
import {
  type ModuleCommand,
  type ModuleId,
  type ModuleKey,
  type ModuleSpec,
  moduleKeyOf,
} from '../../src/tunnel/module.ts';
import type { BaseAddress, Tunnel, TunnelHandler, TunnelName } from '../../src/tunnel/tunnel.ts';

/** What a base is told, in words: `install b1 biz1:1.0.0`. As over HTTP it takes `switch`, as over MQTT it does not. */
export class FakeTunnel implements Tunnel {
  readonly name: TunnelName;
  readonly canSwitch: boolean;
  /** MQTT: whether the broker knows its users. */
  provesIdentity: boolean;
  /** Of both. */
  policy = new AddressPolicy();
  readonly maxOperations = 64;
  readonly sent: string[] = [];
  readonly specs = new Map<ModuleKey, ModuleSpec>();
  isLinkUp = true;
  /** What becomes of a message to ourselves. */
  probe: (timeoutMs: number) => Promise<boolean> = () => Promise.resolve(true);
  /** Commands that begin with this cannot be handed over. */
  refuses: string | undefined;
  /** Called for each message that a base receives. */
  onSent: (question: 'list' | 'health' | ModuleCommand, identity: string, key: ModuleKey) => void = () => {};

  constructor(name: TunnelName = 'mqtt_tunnel_provider') {
    this.name = name;
    this.canSwitch = name === 'http_tunnel_provider';
    this.provesIdentity = name === 'mqtt_tunnel_provider';
  }

  addressFault(ip: string): string | undefined {
    return this.policy.faultOf(ip);
  }

  run(_handler: TunnelHandler, _signal: AbortSignal): Promise<void> {
    return Promise.resolve();
  }

  isUp(): boolean {
    return this.isLinkUp;
  }

  /** When the link came up last. */
  upAt: number | undefined;
  /** When the link broke; for tests that say so. */
  brokenAt: number | undefined;
  abandonCount = 0;

  upSince(): number | undefined {
    return this.isLinkUp ? this.upAt : undefined;
  }

  downSince(): number | undefined {
    return this.brokenAt;
  }

  abandon(): void {
    this.abandonCount++;
  }

  probeLink(timeoutMs: number): Promise<boolean> {
    return this.probe(timeoutMs);
  }

  queryModules = (base: BaseAddress): Promise<void> => this.#send('list', base);
  queryHealth = (base: BaseAddress): Promise<void> => this.#send('health', base);
  identify = (base: BaseAddress): Promise<void> => this.queryHealth(base);
  installModule = (base: BaseAddress, spec: ModuleSpec): Promise<void> => {
    this.specs.set(moduleKeyOf(spec), spec);
    return this.#send('install', base, spec);
  };
  uninstallModule = (base: BaseAddress, id: ModuleId): Promise<void> => this.#send('uninstall', base, id);
  switchModule = (base: BaseAddress, id: ModuleId): Promise<void> => this.#send('switch', base, id);

  /** What was sent since the last call of it and begins with `prefix`. */
  take(prefix = ''): string[] {
    return this.sent.splice(0).filter((line) => line.startsWith(prefix));
  }

  #send(question: Parameters<FakeTunnel['onSent']>[0], base: BaseAddress, id?: ModuleId): Promise<void> {
    const key = id === undefined ? '' : moduleKeyOf(id);
    const line = `${question} ${base.identity}${key && ` ${key}`}`;
    this.sent.push(line);
    if (!this.isLinkUp || (this.refuses !== undefined && line.startsWith(this.refuses))) {
      return Promise.reject(new ControllerError('Tunnel.SendFailed', 'not taken'));
    }
    this.onSent(question, base.identity, key);
    return Promise.resolve();
  }
}
