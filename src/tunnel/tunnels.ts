import type { Tunnel, TunnelName } from './tunnel.ts';

/** The enabled tunnels by name. A base is spoken to through the tunnel that it is heard over. */
export class Tunnels {
  readonly #byName: ReadonlyMap<TunnelName, Tunnel>;

  constructor(tunnels: readonly Tunnel[]) {
    this.#byName = new Map(tunnels.map((tunnel) => [tunnel.name, tunnel]));
  }

  /** undefined for a tunnel that is not enabled (any more). */
  get(name: TunnelName): Tunnel | undefined {
    return this.#byName.get(name);
  }

  all(): Iterable<Tunnel> {
    return this.#byName.values();
  }

  /** Those whose link is up now. */
  namesUp(): readonly TunnelName[] {
    return [...this.#byName.values()].filter((tunnel) => tunnel.isUp()).map(({ name }) => name);
  }
}
