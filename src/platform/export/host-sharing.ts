import type { CachedTenancy } from '../../kinds/module-tenancy.ts';
import { coversHost, type Place } from './conflicts.ts';

interface Share {
  readonly host: string;
  readonly owner: string;
  readonly members: ReadonlySet<string>;
}

/** Hosts that namespaces share, as their ModuleTenancies say. */
export class HostSharing {
  /** Shares by each namespace that is their owner or a guest. */
  readonly #shares = new Map<string, Share[]>();

  constructor(tenancies: Iterable<Pick<CachedTenancy, 'namespace' | 'sharedHosts'>>) {
    for (const { namespace: owner, sharedHosts } of tenancies)
      for (const { host, namespaces } of sharedHosts)
        this.#add({ host, owner, members: new Set([owner, ...namespaces]) });
  }

  /**
   * Whether Services of both namespaces may have the host: as owner and guest, or as guests of one owner. Who of them
   * came first does not matter, so a new Service of the owner loses nothing to a guest.
   */
  isShared(host: string, [one, other]: readonly [string, string]): boolean {
    return this.#sharesOf(one).some((share) => share.members.has(other) && coversHost(share.host, host));
  }

  /** Hosts among these that another namespace lets this one have. */
  guestAt(namespace: string, ports: readonly Pick<Place, 'host'>[]): string[] {
    const others = this.#sharesOf(namespace).filter(({ owner }) => owner !== namespace);
    if (others.length === 0) return [];
    const hosts = new Set(ports.map(({ host }) => host).filter((host) => host !== ''));
    // A wildcard may have names below it only because they are shared.
    const isOf = (host: string): boolean =>
      others.some((share) => coversHost(share.host, host) || coversHost(host, share.host));
    return [...hosts].filter(isOf).sort();
  }

  #sharesOf(namespace: string): readonly Share[] {
    return this.#shares.get(namespace) ?? [];
  }

  #add(share: Share): void {
    for (const member of share.members) {
      const shares = this.#shares.get(member);
      if (shares === undefined) this.#shares.set(member, [share]);
      else shares.push(share);
    }
  }
}
