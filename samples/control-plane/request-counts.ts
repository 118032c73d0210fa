/** Requests that are alike, and how many they were. */
export interface RequestCount {
  /** As the API server knows it: `admin`, `system:serviceaccount:namespace:name`, … */
  user: string;
  /** get, list, watch, create, update, patch, delete, deletecollection; for a path that is no resource, its method. */
  verb: string;
  /** The API group; '' is the core group. */
  group: string;
  /** With its subresource: `pods`, `pods/status`; a path that is no resource stands for itself: `/readyz`. */
  resource: string;
  /** The HTTP status of the answer. */
  code: number;
  count: number;
}

export type RequestFilter = Partial<Omit<RequestCount, 'count'>>;

type Key = string;

/** How many requests the API server has answered. Immutable: an earlier one serves as a mark. */
export class RequestCounts {
  readonly #counts: ReadonlyMap<Key, RequestCount>;

  constructor(counts: ReadonlyMap<Key, RequestCount>) {
    this.#counts = counts;
  }

  /** All that match, most frequent first. */
  entries(filter: RequestFilter = {}): RequestCount[] {
    return [...this.#counts.values()].filter((entry) => matches(entry, filter)).sort((a, b) => b.count - a.count);
  }

  /** The number of requests that match: `count({ verb: 'patch', resource: 'pods/status', code: 200 })`. */
  count(filter: RequestFilter = {}): number {
    return this.entries(filter).reduce((sum, entry) => sum + entry.count, 0);
  }

  /** The requests in this one that were not in the earlier one. */
  since(earlier: RequestCounts): RequestCounts {
    const later = [...this.#counts].map(([key, entry]): [Key, RequestCount] => {
      return [key, { ...entry, count: entry.count - (earlier.#counts.get(key)?.count ?? 0) }];
    });
    return new RequestCounts(new Map(later.filter(([, entry]) => entry.count > 0)));
  }

  /** A watch is one request for hours: where work is counted it is left out. */
  withoutWatches(): RequestCounts {
    return this.where(({ verb }) => verb !== 'watch');
  }

  of(filter: RequestFilter): RequestCounts {
    return this.where((entry) => matches(entry, filter));
  }

  where(fits: (entry: RequestCount) => boolean): RequestCounts {
    return new RequestCounts(new Map([...this.#counts].filter(([, entry]) => fits(entry))));
  }
}

export class RequestCounter {
  readonly #counts = new Map<Key, RequestCount>();

  add(request: Omit<RequestCount, 'count'>): void {
    const key = [request.user, request.verb, request.group, request.resource, request.code].join(' ');
    const entry = this.#counts.get(key) ?? { ...request, count: 0 };
    entry.count++;
    this.#counts.set(key, entry);
  }

  snapshot(): RequestCounts {
    return new RequestCounts(new Map([...this.#counts].map(([key, entry]) => [key, { ...entry }])));
  }
}

function matches(entry: RequestCount, filter: RequestFilter): boolean {
  return Object.entries(filter).every(([field, wanted]) => entry[field as keyof RequestFilter] === wanted);
}

/** `patch leases 200`: how many. */
export function byVerbAndResource(requests: RequestCounts): Record<string, number> {
  const entries = requests.entries();
  return Object.fromEntries(entries.map(({ verb, resource, code, count }) => [`${verb} ${resource} ${code}`, count]));
}

/** The same behind the user: `node-controller patch nodes 200`; a ServiceAccount is called by its name. */
export function byUserVerbAndResource(requests: RequestCounts): Record<string, number> {
  const nameOf = (user: string): string => user.split(':').at(-1) ?? user;
  const entries = requests.entries();
  return Object.fromEntries(
    entries.map(({ user, verb, resource, code, count }) => [`${nameOf(user)} ${verb} ${resource} ${code}`, count]),
  );
}
