import type { CachedTenancy } from '../../kinds/module-tenancy.ts';
import { coversHost, type Place } from './conflicts.ts';

/** Hosts that namespaces share, as their ModuleTenancies say. */
export class HostSharing {
  readonly #shares: { readonly host: string; readonly owner: string; readonly guests: ReadonlySet<string> }[];

  constructor(tenancies: Iterable<Pick<CachedTenancy, 'namespace' | 'sharedHosts'>>) {
    this.#shares = [...tenancies].flatMap(({ namespace: owner, sharedHosts }) =>
      sharedHosts.map(({ host, namespaces }) => ({ host, owner, guests: new Set(namespaces) })),
    );
  }

  /**
   * Whether Services of both namespaces may have the host: as owner and guest, or as guests of one owner. Who of them
   * came first does not matter, so a new Service of the owner loses nothing to a guest.
   */
  isShared(host: string, namespaces: readonly [string, string]): boolean {
    return this.#shares.some(
      (share) =>
        namespaces.every((one) => one === share.owner || share.guests.has(one)) && coversHost(share.host, host),
    );
  }

  /** Hosts among these that another namespace lets this one have. */
  guestAt(namespace: string, ports: readonly Pick<Place, 'host'>[]): string[] {
    const mine = this.#shares.filter(({ owner, guests }) => owner !== namespace && guests.has(namespace));
    if (mine.length === 0) return [];
    const hosts = new Set(ports.map(({ host }) => host).filter((host) => host !== ''));
    return [...hosts].filter((host) => mine.some((share) => coversHost(share.host, host))).sort();
  }
}
