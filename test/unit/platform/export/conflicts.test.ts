import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeObject, ServiceObject, ServicePort } from '../../../../src/kube/objects.ts';
import type { ExportEntry } from '../../../../src/platform/export/export-table.ts';
import { type ExportedPort, normalPath } from '../../../../src/platform/export/exported-service.ts';
import { ExportWorld, HTTP_PORT, serviceOf } from './export-world.ts';

const GROUP = 'external';

/** A Service of HTTP, `namespace/name`, created on a day of January. */
function web(key: string, domainName: string, { day = 1, path = '/', uid = key } = {}): ServiceObject {
  const [namespace, name] = key.split('/') as [string, string];
  return serviceOf(name, {
    namespace,
    uid,
    ports: [HTTP_PORT],
    annotations: { 'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName, path } }) },
    createdAt: `2026-01-${String(day).padStart(2, '0')}T00:00:00Z`,
  });
}

interface Tenancy extends KubeObject {
  readonly spec: { readonly exportSharedHosts: readonly { readonly host: string; readonly namespaces: string[] }[] };
}

function sharing(namespace: string, host: string, ...namespaces: string[]): Tenancy {
  const metadata = { name: 'limits', namespace, uid: `tenancy-${namespace}`, resourceVersion: '1' };
  return { metadata, spec: { exportSharedHosts: namespaces.length > 0 ? [{ host, namespaces }] : [] } };
}

/** As the leader goes on until nothing changes any more. */
function publishAll(world: ExportWorld): ExportWorld {
  for (let round = 0; round < 4; round++) world.publish(...world.table.keys());
  return world;
}

describe('a wildcard', () => {
  it.each([1, 3])('takes no host below it from another namespace, whoever has the oldest one (day %i)', (day) => {
    const world = new ExportWorld().put(web('evil/x', 'x.example.com', { day }));
    publishAll(world).put(web('shop/shop', 'shop.example.com', { day: 2 }));
    publishAll(world).put(web('evil/y', '*.example.com', { day: 9 }));
    expect(world.namesOf(GROUP)).toEqual(['evil/x', 'shop/shop']);
    expect(world.table.get('evil/y')?.conflicts.get(GROUP)).toEqual({
      winner: 'shop/shop',
      what: 'host shop.example.com, which *.example.com covers',
    });
    expect(publishAll(world).namesOf(GROUP)).toEqual(['evil/x', 'shop/shop']);
  });

  it('takes none with a Service that has a host below it already', () => {
    const world = new ExportWorld().put(web('evil/x', 'x.example.com'));
    publishAll(world).put(web('shop/shop', 'shop.example.com', { day: 2 }));
    publishAll(world).put(web('evil/x', '*.example.com'));
    expect(world.namesOf(GROUP)).toEqual(['shop/shop']);
    expect(publishAll(world).namesOf(GROUP)).toEqual(['shop/shop']);
  });

  it.each(['*.example.com', 'g.example.com'])('is served beside a guest at a name below it: %s is shared', (shared) => {
    const world = publishAll(new ExportWorld().put(web('own/o', '*.example.com')));
    world.share(sharing('own', shared, 'guest')).put(web('guest/g', 'g.example.com', { day: 2 }));
    expect(world.namesOf(GROUP)).toEqual(['guest/g', 'own/o']);
    expect(publishAll(world).namesOf(GROUP)).toEqual(['guest/g', 'own/o']);
    world.put(web('guest/g', '*.g.example.com', { day: 2 }));
    expect(world.namesOf(GROUP)).toEqual(shared.startsWith('*') ? ['guest/g', 'own/o'] : ['own/o']);
  });

  it('stays with its owner when it is no longer shared, and the guest goes', () => {
    const world = new ExportWorld().share(sharing('own', '*.example.com', 'guest'));
    world.put(web('own/o', '*.example.com', { day: 6 }), web('guest/g', 'g.example.com', { day: 5 }));
    publishAll(world).share(sharing('own', '*.example.com'));
    expect(world.namesOf(GROUP)).toEqual(['own/o']);
    expect(publishAll(world).namesOf(GROUP)).toEqual(['own/o']);
  });
});

describe('a shared host', () => {
  const world = (): ExportWorld => new ExportWorld().share(sharing('own', 'shop.example.com', 'guest', 'third'));

  it('has room for new Services of its owner and of other guests, also beside an older guest', () => {
    const it = publishAll(world().put(web('own/o', 'shop.example.com', { day: 5 })));
    publishAll(it.put(web('guest/g', 'shop.example.com', { path: '/g' })));
    it.put(web('own/new', 'shop.example.com', { path: '/new', day: 9 }));
    it.put(web('third/t', 'shop.example.com', { path: '/t', day: 9 }));
    expect(it.namesOf(GROUP)).toEqual(['guest/g', 'own/new', 'own/o', 'third/t']);
    it.put(web('fourth/f', 'shop.example.com', { path: '/f' }));
    expect(it.namesOf(GROUP)).toEqual(['guest/g', 'own/new', 'own/o', 'third/t']);
  });

  it('is still that of an owner which creates its Service again', () => {
    const it = world().put(
      web('own/o', 'shop.example.com'),
      web('guest/g', 'shop.example.com', { path: '/g', day: 2 }),
    );
    publishAll(it).remove(web('own/o', 'shop.example.com'));
    it.put(web('own/o', 'shop.example.com', { day: 9, uid: 'again' }));
    expect(it.namesOf(GROUP)).toEqual(['guest/g', 'own/o']);
  });

  it('stays with a guest that is alone when the share ends, until it is shared again and that share ends', () => {
    const it = publishAll(world().put(web('guest/g', 'shop.example.com', { path: '/g' })));
    publishAll(it.share(sharing('own', 'shop.example.com')));
    publishAll(it.put(web('own/o', 'shop.example.com', { day: 9 })));
    expect(it.namesOf(GROUP)).toEqual(['guest/g']);
    publishAll(it.share(sharing('own', 'shop.example.com', 'guest')));
    expect(it.namesOf(GROUP)).toEqual(['guest/g', 'own/o']);
    expect(it.exports.get('guest/g')?.status?.guestAt).toEqual(['shop.example.com']);
    publishAll(it.share(sharing('own', 'shop.example.com')));
    expect(it.namesOf(GROUP)).toEqual(['own/o']);
  });
});

describe('two Services that hold one host by their records', () => {
  it('leave it to the older one, when what the other one has got was written before what this one has lost', () => {
    const world = new ExportWorld().put(web('n3/b', '*.a.e.com'), web('n1/a', 'a.e.com'), web('n1/b', '*.a.e.com'));
    world.publish('n1/b', 'n3/b');
    // It loses its host for the time of one write of the other one.
    world.put(web('n1/b', 'a.e.com')).publish('n3/b');
    expect(world.namesOf(GROUP)).toEqual(['n1/a', 'n3/b']);
    world.put(web('n1/b', '*.a.e.com', { path: '/x' }));
    expect(world.namesOf(GROUP)).toEqual(['n1/a', 'n1/b']);
  });

  it('leave it to its owner, also if the guest has a wildcard that is wider than the share', () => {
    const world = new ExportWorld().share(sharing('n1', '*.a.e.com', 'n3'));
    world.put(web('n1/a', 'x.a.e.com', { day: 2 }), web('n3/a', '*.e.com'));
    expect(publishAll(world).namesOf(GROUP)).toEqual(['n1/a', 'n3/a']);
    world.share(sharing('n1', '*.a.e.com')).put(web('n2/other', 'other.com'));
    expect(world.namesOf(GROUP)).toEqual(['n1/a', 'n2/other']);
  });
});

/** What somebody does, at random. */
type Step =
  | {
      readonly do: 'put';
      readonly key: string;
      readonly day: number;
      readonly isNew: boolean;
      readonly ports: PortDraw[];
    }
  | { readonly do: 'remove'; readonly key: string }
  | { readonly do: 'publish'; readonly which: number }
  | { readonly do: 'share'; readonly owner: string; readonly host: string; readonly guests: string[] };

interface PortDraw {
  readonly protocol: string;
  readonly port: number;
  readonly host: string;
  readonly path: string;
}

const HOSTS = ['a.e.com', 'b.e.com', '*.e.com', '*.a.e.com', 'x.a.e.com'];
const NAMESPACES = ['n1', 'n2', 'n3'];
const KEYS = NAMESPACES.flatMap((namespace) => [`${namespace}/a`, `${namespace}/b`]);

const port: fc.Arbitrary<PortDraw> = fc.record({
  protocol: fc.constantFrom('http', 'http', 'http', 'https', 'tcp', 'udp'),
  port: fc.integer({ min: 80, max: 82 }),
  host: fc.constantFrom(...HOSTS),
  path: fc.constantFrom('/', '/x', '/x/', '/y'),
});

const key = fc.constantFrom(...KEYS);
const step = (shares: boolean): fc.Arbitrary<Step> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('put' as const),
        key,
        day: fc.integer({ min: 1, max: 5 }),
        isNew: fc.boolean(),
        ports: fc.uniqueArray(port, { minLength: 1, maxLength: 2, selector: ({ port: number }) => number }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), key }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('publish' as const), which: fc.integer({ min: 1, max: 63 }) }),
    },
    ...(shares
      ? [
          {
            weight: 1,
            arbitrary: fc.record({
              do: fc.constant('share' as const),
              owner: fc.constantFrom(...NAMESPACES),
              host: fc.constantFrom(...HOSTS),
              guests: fc.subarray(NAMESPACES),
            }),
          },
        ]
      : []),
  );

/** The world with all that was stored, so that another replica can start from it. */
class Story {
  readonly world = new ExportWorld();
  readonly services = new Map<string, ServiceObject>();
  readonly exports = new Map<string, KubeObject>();
  readonly tenancies = new Map<string, Tenancy>();
  #uid = 0;

  do(step: Step): void {
    if (step.do === 'put') this.#put(step);
    else if (step.do === 'remove') this.#remove(step.key);
    else if (step.do === 'publish') this.publish((index) => (step.which & (1 << index)) !== 0);
    else {
      const { owner, host, guests } = step;
      const tenancy = sharing(owner, host, ...guests.filter((one) => one !== owner));
      this.tenancies.set(owner, tenancy);
      this.world.share(tenancy);
    }
  }

  publish(isMeant: (index: number) => boolean = () => true): void {
    const keys = [...this.world.table.keys()].sort().filter((_key, index) => isMeant(index));
    for (const one of keys) this.exports.set(one, this.world.exportOf(one));
    this.world.publish(...keys);
  }

  #put({ key, day, isNew, ports }: Extract<Step, { do: 'put' }>): void {
    const [namespace, name] = key.split('/') as [string, string];
    const former = this.services.get(key);
    const isSame = former !== undefined && !isNew;
    const described = ports.filter(({ protocol }) => protocol.startsWith('http'));
    const service = serviceOf(name, {
      namespace,
      uid: (isSame ? former.metadata.uid : undefined) ?? `${key}-${++this.#uid}`,
      createdAt: (isSame ? former.metadata.creationTimestamp : undefined) ?? `2026-01-0${day}T00:00:00Z`,
      ports: ports.map(({ protocol, port: number }): ServicePort => {
        return { name: `p${number}`, port: number, ...(protocol === 'udp' && { protocol: 'UDP' }) };
      }),
      annotations: {
        'platform.koupleless.io/export-ports': JSON.stringify(
          Object.fromEntries(
            described.map(({ protocol, port: number, host, path }) => [
              `p${number}`,
              { protocol, domainName: host, path },
            ]),
          ),
        ),
      },
    });
    this.services.set(key, service);
    this.world.put(service);
  }

  #remove(key: string): void {
    const service = this.services.get(key);
    if (service === undefined) return;
    this.services.delete(key);
    this.world.remove(service);
  }

  /** A replica that starts now and gets its objects in the opposite order. */
  another(): ExportWorld {
    const world = new ExportWorld();
    for (const object of [...this.tenancies.values()].reverse()) world.tenancies.deliver({ type: 'PUT', object });
    for (const object of [...this.exports.values()].reverse()) world.exports.deliver({ type: 'PUT', object });
    for (const object of [...this.services.values()].reverse()) world.services.deliver({ type: 'PUT', object });
    world.clock.advance(1_000);
    return world;
  }

  isShared(host: string, one: string, other: string): boolean {
    return [...this.tenancies.values()].some(({ metadata, spec }) =>
      spec.exportSharedHosts.some((share) => {
        const members = [metadata.namespace, ...share.namespaces];
        return members.includes(one) && members.includes(other) && covers(share.host, host);
      }),
    );
  }
}

function covers(wide: string, narrow: string): boolean {
  return wide === narrow || (wide.startsWith('*.') && narrow.replace('*', 'star').endsWith(wide.slice(1)));
}

function listOf(world: ExportWorld): string[] {
  return world.table.entriesOf(GROUP).map(({ key, view }) => `${key} ${view.json}`);
}

function pairs<T>(first: readonly T[], second = first): [T, T][] {
  return first.flatMap((a) => second.map((b): [T, T] => [a, b]));
}

/** Why a balancer cannot serve both. */
function clash(a: ExportEntry, b: ExportEntry, story: Story): string | undefined {
  return pairs(a.settings.ports, b.settings.ports)
    .map(([p, q]) => hostClash([a, p.host], [b, q.host], story) ?? portClash(p, q))
    .find((found) => found !== undefined);
}

function hostClash([a, p]: [ExportEntry, string], [b, q]: [ExportEntry, string], story: Story): string | undefined {
  if (p === '' || q === '' || a.namespace === b.namespace) return undefined;
  const narrow = [p, q].find((host) => covers(p, host) && covers(q, host));
  return narrow === undefined || story.isShared(narrow, a.namespace, b.namespace) ? undefined : `host ${narrow}`;
}

function portClash(p: ExportedPort, q: ExportedPort): string | undefined {
  if (p.transport !== q.transport || p.servicePort !== q.servicePort) return undefined;
  if (p.protocol !== q.protocol || p.host === '') return `port ${p.servicePort}`;
  return p.host === q.host && normalPath(p.path) === normalPath(q.path) ? `${p.host}${p.path}` : undefined;
}

describe.each([false, true])(
  'whatever Services ask for in whatever order, and whoever writes it down (sharing: %s)',
  (shares) => {
    const steps = fc.array(step(shares), { minLength: 2, maxLength: 14 });

    it('no two that a balancer cannot serve together are listed', () => {
      fc.assert(
        fc.property(steps, (drawn) => {
          const story = new Story();
          for (const one of drawn) {
            story.do(one);
            const found = pairs(story.world.table.entriesOf(GROUP))
              .filter(([a, b]) => a.key < b.key)
              .map(([a, b]) => clash(a, b, story));
            expect(found.filter((one) => one !== undefined)).toEqual([]);
          }
        }),
        { numRuns: 400 },
      );
    });

    it('all replicas say the same, also one that starts now', () => {
      fc.assert(
        fc.property(steps, (drawn) => {
          const story = new Story();
          for (const one of drawn) {
            story.do(one);
            expect(listOf(story.another())).toEqual(listOf(story.world));
          }
        }),
        { numRuns: 400 },
      );
    });

    it('it comes to rest, and nobody is left out by one that is left out itself', () => {
      fc.assert(
        fc.property(steps, (drawn) => {
          const story = new Story();
          for (const one of drawn) story.do(one);
          for (let round = 0; round < KEYS.length + 1; round++) story.publish();
          const before = listOf(story.world);
          story.publish();
          expect(listOf(story.world)).toEqual(before);
          const listed = new Set(story.world.namesOf(GROUP));
          for (const one of story.world.table.keys()) {
            const winner = story.world.table.get(one)?.conflicts.get(GROUP)?.winner;
            if (winner !== undefined) expect(listed, `${one} gives way to ${winner}`).toContain(winner);
          }
        }),
        { numRuns: 400 },
      );
    });

    it('a Service that is listed as it asks keeps its place, whatever others do', () => {
      fc.assert(
        fc.property(steps, (drawn) => {
          const story = new Story();
          for (const one of drawn) {
            // One that got a free place has it when its own ExportService says so.
            for (let round = 0; round < KEYS.length; round++) story.publish();
            const settled = story.world.namesOf(GROUP);
            const before = new Map(story.services);
            story.do(one);
            // A share that ends takes the place of a guest, which is wanted.
            if (one.do === 'share') continue;
            const same = settled.filter((name) => before.get(name) === story.services.get(name));
            expect(story.world.namesOf(GROUP)).toEqual(expect.arrayContaining(same));
          }
        }),
        { numRuns: 400 },
      );
    });
  },
);
