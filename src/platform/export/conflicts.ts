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
}

/** Why a Service is left out of a group. */
export interface Conflict {
  /** The Service that keeps it, `namespace/name`. */
  readonly winner: string;
  /** What both want, in words. */
  readonly what: string;
}

/**
 * Which Services of one group are left out, by key: a balancer of the group serves all of them, so each host and path,
 * and each port of plain TCP or UDP, goes to one Service only, and each host to one namespace. A Service that has it keeps it, whatever another one asks
 * for later: an old Service that is labelled or changed today takes nothing from others. One that is left out keeps
 * nothing from others, as soon as its ExportService says so.
 */
export function conflictsOf(claimants: Iterable<Claimant>, isGuest: IsGuest = () => false): Map<string, Conflict> {
  const byAge = [...claimants]
    .sort(olderFirst)
    .map((claimant) => ({ ...claimant, wants: claimant.ports.flatMap(wantedBy) }));
  const held: Taken = new Map();
  for (const { key, wants, held: places } of byAge) {
    const wanted = new Set(wants.map(({ keeps }) => keeps));
    for (const { keeps } of places.flatMap(wantedBy)) if (wanted.has(keeps)) take(held, keeps, key);
  }
  const taken: Taken = new Map();
  const conflicts = new Map<string, Conflict>();
  for (const { key, wants } of byAge) {
    const judge = (places: Taken, want: Want): Conflict | undefined => conflictIn(places, want, key, isGuest);
    // Two namespaces may hold one host, from before it was theirs alone.
    const holds = ({ keeps }: Want): boolean => held.get(keeps)?.includes(key) === true;
    const found = wants
      .map((want) => judge(held, want) ?? (holds(want) ? undefined : judge(taken, want)))
      .find(Boolean);
    if (found !== undefined) conflicts.set(key, found);
    else for (const { keeps } of wants) take(taken, keeps, key);
  }
  return conflicts;
}

/** Whether Services of the namespace `guest` may have a host of Services of the namespace `owner`. */
export type IsGuest = (claim: { readonly owner: string; readonly guest: string; readonly host: string }) => boolean;

/** What a port keeps, and what it cannot have because another Service keeps that. */
interface Want {
  /** A host name of whoever keeps it, with all its paths: those of one namespace share it, and its guests. */
  readonly host?: string;
  readonly keeps: string;
  readonly collidesWith: readonly string[];
  readonly what: string;
}

type Kinds = [tcp: string, http: string, https: string];

/** HTTP shares its port with other hosts and paths of HTTP, HTTPS with those of HTTPS, and both with nothing else. */
function wantedBy({ protocol, servicePort, host, path }: Place): Want[] {
  if (protocol === 'udp') {
    const keeps = `udp ${servicePort}`;
    return [{ keeps, collidesWith: [keeps], what: `UDP port ${servicePort}` }];
  }
  const [ofTcp, ofHttp, ofHttps] = ['tcp', 'http', 'https'].map((kind) => `${kind} ${servicePort}`) as Kinds;
  const what = `TCP port ${servicePort}`;
  if (protocol === 'tcp') return [{ keeps: ofTcp, collidesWith: [ofTcp, ofHttp, ofHttps], what }];
  const place = `${servicePort} ${host}${normalPath(path)}`;
  const isHttps = protocol === 'https';
  return [
    {
      keeps: isHttps ? ofHttps : ofHttp,
      collidesWith: [ofTcp, isHttps ? ofHttp : ofHttps],
      what: `port ${servicePort} for another protocol`,
    },
    { keeps: place, collidesWith: [place], what: `${host}${path} on port ${servicePort}` },
    ...hostsWantedBy(host),
  ];
}

/** A host is taken with all that it covers: `*.example.com` has `a.example.com` and `*.b.example.com` too. */
function hostsWantedBy(host: string): Want[] {
  const what = `host ${host}`;
  const above = wildcardsAbove(host).map((wildcard) => ({
    host: wildcard,
    keeps: `below ${wildcard}`,
    collidesWith: [`host ${wildcard}`],
    what: `${what}, which ${wildcard} covers`,
  }));
  const covered = host.startsWith(WILDCARD) ? [`below ${host}`] : [];
  return [{ host, keeps: `host ${host}`, collidesWith: [`host ${host}`, ...covered], what }, ...above];
}

const WILDCARD = '*.';

/** `*.b.c` and `*.c` of `a.b.c`, and `*.c` of `*.b.c`. */
function wildcardsAbove(host: string): string[] {
  const labels = (host.startsWith(WILDCARD) ? host.slice(WILDCARD.length) : host).split('.');
  return labels.slice(1).map((_, index) => `${WILDCARD}${labels.slice(index + 1).join('.')}`);
}

/** Who has what, the oldest first: several share a port for HTTP. */
type Taken = Map<string, string[]>;

function take(taken: Taken, what: string, key: string): void {
  const holders = taken.get(what);
  if (holders === undefined) taken.set(what, [key]);
  else holders.push(key);
}

function conflictIn(
  taken: Taken,
  { host, collidesWith, what }: Want,
  key: string,
  isGuest: IsGuest,
): Conflict | undefined {
  for (const name of collidesWith) {
    const holders = taken.get(name) ?? [];
    const [winner] = holders;
    if (winner === undefined || holders.includes(key)) continue;
    if (host !== undefined && mayShare(winner, key, host, isGuest)) continue;
    return { winner, what };
  }
  return undefined;
}

function mayShare(winner: string, key: string, host: string, isGuest: IsGuest): boolean {
  const [owner, guest] = [namespaceOf(winner), namespaceOf(key)];
  return owner === guest || isGuest({ owner, guest, host });
}

function namespaceOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

/** Those of one second by their names: every replica has to say the same. */
function olderFirst(a: Claimant, b: Claimant): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
