import type { ExportedPort } from './exported-service.ts';

/** An exported Service, as far as others have to give way to it. */
export interface Claimant {
  /** `namespace/name`. */
  readonly key: string;
  /** RFC 3339: the older one keeps what two want. */
  readonly createdAt: string;
  readonly ports: readonly ExportedPort[];
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
 * and each port of plain TCP or UDP, goes to one Service only. One that is left out keeps nothing from others.
 */
export function conflictsOf(claimants: Iterable<Claimant>): Map<string, Conflict> {
  const taken = new Map<string, string>();
  const conflicts = new Map<string, Conflict>();
  for (const { key, ports } of [...claimants].sort(byAge)) {
    const found = ports.flatMap((port) => wantedBy(port).flatMap((want) => conflictIn(taken, want) ?? []))[0];
    if (found !== undefined) {
      conflicts.set(key, found);
      continue;
    }
    for (const port of ports) for (const { keeps } of wantedBy(port)) if (!taken.has(keeps)) taken.set(keeps, key);
  }
  return conflicts;
}

/** What a port keeps, and what it cannot have because another Service keeps that. */
interface Want {
  readonly keeps: string;
  readonly collidesWith: readonly string[];
  readonly what: string;
}

/** HTTP over TCP shares its port with other hosts and paths, and with nothing else. */
function wantedBy({ protocol, servicePort, host, path }: ExportedPort): Want[] {
  if (protocol === 'udp') {
    const keeps = `udp ${servicePort}`;
    return [{ keeps, collidesWith: [keeps], what: `UDP port ${servicePort}` }];
  }
  const ofTcp = `tcp ${servicePort}`;
  const ofHttp = `http ${servicePort}`;
  if (protocol === 'tcp') return [{ keeps: ofTcp, collidesWith: [ofTcp, ofHttp], what: `TCP port ${servicePort}` }];
  const place = `${servicePort} ${host}${path}`;
  return [
    { keeps: ofHttp, collidesWith: [ofTcp], what: `TCP port ${servicePort}` },
    { keeps: place, collidesWith: [place], what: `${host}${path} on port ${servicePort}` },
  ];
}

function conflictIn(taken: ReadonlyMap<string, string>, { collidesWith, what }: Want): Conflict | undefined {
  for (const name of collidesWith) {
    const winner = taken.get(name);
    if (winner !== undefined) return { winner, what };
  }
  return undefined;
}

/** Those of one second by their names: every replica has to say the same. */
function byAge(a: Claimant, b: Claimant): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
