import { ControllerError } from '../errors.ts';
import type { Tunnel, TunnelName } from './tunnel.ts';

/** The enabled tunnels by name. A base is spoken to through the tunnel that it is heard over. */
export class Tunnels {
  readonly #byName: ReadonlyMap<TunnelName, Tunnel>;

  constructor(tunnels: readonly Tunnel[]) {
    this.#byName = new Map(tunnels.map((tunnel) => [tunnel.name, tunnel]));
  }

  /** Throws `Tunnel.NotConnected` for a tunnel that is not enabled (any more). */
  get(name: TunnelName): Tunnel {
    const tunnel = this.#byName.get(name);
    if (tunnel === undefined) throw new ControllerError('Tunnel.NotConnected', `${name} is not enabled`);
    return tunnel;
  }

  has(name: TunnelName): boolean {
    return this.#byName.has(name);
  }

  all(): Iterable<Tunnel> {
    return this.#byName.values();
  }

  isAnyUp(): boolean {
    return [...this.#byName.values()].some((tunnel) => tunnel.isUp());
  }
}
