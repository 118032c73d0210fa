import { type ExportedPort, normalPath } from './exported-service.ts';

/** Place at which a balancer listens for a port of a Service. */
export type Place = Pick<ExportedPort, 'protocol' | 'servicePort' | 'host' | 'path'>;

/** An exported Service, as far as others have to give way to it. */
export interface Claimant {
  /** `namespace/name`. */
  readonly key: string;
  /** RFC 3339: among those that hold nothing yet, the older one gets what two want. */
  readonly createdAt: string;
  readonly ports: readonly Place[];
  /** What its ExportService says that it has in this group. */
  readonly held: readonly Place[];
  /** Hosts among these that it had because another namespace shared them. */
  readonly guestAt: readonly string[];
}

/** Why a Service is left out of a group. */
export interface Conflict {
  /** The Service that keeps it, `namespace/name`. */
  readonly winner: string;
  /** What both want, in words. */
  readonly what: string;
}

/** Whether Services of both namespaces may have a host, or names that it covers. It is the same in both directions. */
export type IsShared = (host: string, namespaces: readonly [string, string]) => boolean;

/**
 * Which Services of one group are left out, by key: a balancer of the group serves all of them, so each host and path,
 * and each port of plain TCP or UDP, goes to one Service only, and each host, with all that it covers, to one namespace.
 * A Service that has it keeps it, whatever another one asks for later: an old Service that is labelled or changed today
 * takes nothing from others. One that is left out keeps nothing from others, as soon as its ExportService says so.
 *
 * A Service that is in, and whose ExportService comes to say so, changes nothing for any other one.
 */
export function conflictsOf(claimants: Iterable<Claimant>, isShared: IsShared = () => false): Map<string, Conflict> {
  const claims = [...claimants].sort(olderFirst).map(claimOf);
  const taken = new TakenPlaces(isShared);
  // What is held is kept before anybody gets more.
  const keepers = new Set<Claim>();
  for (const claim of [...claims].sort((a, b) => Number(a.isGuest) - Number(b.isGuest))) {
    const { key, kept } = claim;
    // Two may hold one host: a share has ended, or what one of them has lost is not written yet. One of them has to go.
    if (kept.length === 0 || taken.conflictOf(key, kept) !== undefined) continue;
    taken.add(key, kept);
    keepers.add(claim);
  }
  const conflicts = new Map<string, Conflict>();
  for (const claim of claims) {
    const { key, kept, others } = claim;
    const found = taken.conflictOf(key, keepers.has(claim) ? others : [...kept, ...others]);
    if (found === undefined) taken.add(key, others.concat(keepers.has(claim) ? [] : kept));
    else conflicts.set(key, found);
  }
  return conflicts;
}

/** What a Service asks of the group: of that, what it holds, and the rest. */
interface Claim {
  readonly key: string;
  readonly isGuest: boolean;
  readonly kept: readonly Want[];
  readonly others: readonly Want[];
}

function claimOf({ key, ports, held, guestAt }: Claimant): Claim {
  const holds = new Set(held.flatMap(wantedBy).map(({ keeps }) => keeps));
  const wants = ports.flatMap(wantedBy);
  return {
    key,
    isGuest: guestAt.length > 0,
    kept: wants.filter(({ keeps }) => holds.has(keeps)),
    others: wants.filter(({ keeps }) => !holds.has(keeps)),
  };
}

/** A host, which belongs to a namespace; or a port or a place on it, which belongs to a Service. */
type Want = { readonly keeps: string } & (
  | { readonly host: string }
  | { readonly host?: undefined; readonly collidesWith: readonly string[]; readonly what: string }
);

/** HTTP shares its port with other hosts and paths of HTTP, HTTPS with those of HTTPS, and both with nothing else. */
function wantedBy({ protocol, servicePort, host, path }: Place): Want[] {
  const port = (kind: Place['protocol']): string => `${kind} ${servicePort}`;
  const keeps = port(protocol);
  if (protocol === 'udp') return [{ keeps, collidesWith: [keeps], what: `UDP port ${servicePort}` }];
  if (protocol === 'tcp')
    return [{ keeps, collidesWith: [keeps, port('http'), port('https')], what: `TCP port ${servicePort}` }];
  const others = [port('tcp'), port(protocol === 'https' ? 'http' : 'https')];
  const place = `${servicePort} ${host}${normalPath(path)}`;
  return [
    { keeps, collidesWith: others, what: `port ${servicePort} for another protocol` },
    { keeps: place, collidesWith: [place], what: `${host}${path} on port ${servicePort}` },
    { keeps: `host ${host}`, host },
  ];
}

const WILDCARD = '*.';

/** `*.b.c` and `*.c` of `a.b.c`, and `*.c` of `*.b.c`. */
function wildcardsAbove(host: string): string[] {
  const labels = (host.startsWith(WILDCARD) ? host.slice(WILDCARD.length) : host).split('.');
  return labels.slice(1).map((_, index) => `${WILDCARD}${labels.slice(index + 1).join('.')}`);
}

/** Whether the first host is the second one, or a wildcard that covers all of it. */
export function coversHost(wide: string, narrow: string): boolean {
  return wide === narrow || wildcardsAbove(narrow).includes(wide);
}

/** The ports, places and hosts that Services have. */
class TakenPlaces {
  readonly #isShared: IsShared;
  /** Services that have a port or place: several share a port for HTTP. */
  readonly #places = new Map<string, string[]>();
  /** The first Service of each namespace that has a host. */
  readonly #hosts = new Map<string, Map<string, string>>();
  /** Hosts that somebody has, by each wildcard that covers them. */
  readonly #covered = new Map<string, Set<string>>();

  constructor(isShared: IsShared) {
    this.#isShared = isShared;
  }

  add(key: string, wants: readonly Want[]): void {
    for (const { host, keeps } of wants) {
      if (host === undefined) {
        const keys = this.#places.get(keeps);
        if (keys === undefined) this.#places.set(keeps, [key]);
        else keys.push(key);
        continue;
      }
      const byNamespace = this.#hosts.get(host) ?? new Map<string, string>();
      this.#hosts.set(host, byNamespace);
      const namespace = namespaceOf(key);
      if (!byNamespace.has(namespace)) byNamespace.set(namespace, key);
      for (const wildcard of wildcardsAbove(host))
        this.#covered.set(wildcard, (this.#covered.get(wildcard) ?? new Set()).add(host));
    }
  }

  /** Undefined: nobody else has what it wants. */
  conflictOf(key: string, wants: readonly Want[]): Conflict | undefined {
    for (const want of wants) {
      const found =
        want.host === undefined
          ? { winner: this.#otherAt(key, want.collidesWith), what: want.what }
          : this.#hostConflict(namespaceOf(key), want.host);
      if (found?.winner !== undefined) return { winner: found.winner, what: found.what };
    }
    return undefined;
  }

  #otherAt(key: string, names: readonly string[]): string | undefined {
    for (const name of names) {
      const other = this.#places.get(name)?.find((one) => one !== key);
      if (other !== undefined) return other;
    }
    return undefined;
  }

  #hostConflict(namespace: string, host: string): Conflict | undefined {
    const same = this.#strangerAt(host, host, namespace);
    if (same !== undefined) return { winner: same, what: `host ${host}` };
    for (const wildcard of wildcardsAbove(host)) {
      const winner = this.#strangerAt(wildcard, host, namespace);
      if (winner !== undefined) return { winner, what: `host ${host}, which ${wildcard} covers` };
    }
    for (const covered of this.#covered.get(host) ?? []) {
      const winner = this.#strangerAt(covered, covered, namespace);
      if (winner !== undefined) return { winner, what: `host ${covered}, which ${host} covers` };
    }
    return undefined;
  }

  /** A Service at this host whose namespace does not share the names in question with the other one. */
  #strangerAt(host: string, names: string, namespace: string): string | undefined {
    for (const [other, key] of this.#hosts.get(host) ?? [])
      if (other !== namespace && !this.#isShared(names, [other, namespace])) return key;
    return undefined;
  }
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

/** Those of one second by their names: every replica has to say the same. */
function olderFirst(a: Claimant, b: Claimant): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
