import { describe, expect, it } from 'vitest';
import { exportStatusOf } from '../../../../src/platform/export/export-view.ts';
import {
  ExportWorld,
  fleet,
  HTTP_PORT,
  nodeOf,
  podOf,
  type ServiceOptions,
  serviceOf,
  TCP_PORT,
} from './export-world.ts';

const DESCRIBED = { 'platform.koupleless.io/export-ports': '{"http":{"domainName":"a.example.com","path":"/x"}}' };

function weighted(weights: Record<string, string>, more: ServiceOptions = {}) {
  const labels = { BCSGROUP: 'external' } as Record<string, string>;
  for (const [name, weight] of Object.entries(weights)) labels[`BCS-WEIGHT-${name}`] = weight;
  return serviceOf('shop', { labels, ...more });
}

describe('an exported Service', () => {
  it('has what balancers need, in the fields of bk-bcs', () => {
    const service = serviceOf('shop', {
      labels: { BCSGROUP: 'external', BCSBALANCE: 'leastconn' },
      annotations: { ...DESCRIBED, 'platform.koupleless.io/max-conn': '100', 'platform.koupleless.io/ssl': 'true' },
      ports: [HTTP_PORT],
    });
    const { table } = new ExportWorld().put(service, ...fleet('shop', 2));
    expect(table.get('t1/shop')?.view.exported).toEqual({
      cluster: 'test',
      namespace: 't1',
      serviceName: 'shop',
      serviceWeight: {},
      ports: [
        {
          name: 'http',
          BCSVHost: 'a.example.com',
          path: '/x',
          protocol: 'http',
          servicePort: 80,
          backends: [
            { targetIP: '10.0.0.1', targetPort: 8080, label: ['1.0.0'], weight: 1 },
            { targetIP: '10.0.0.2', targetPort: 8080, label: ['1.0.0'], weight: 1 },
          ],
        },
      ],
      BCSGroup: ['external'],
      sslcert: true,
      balance: 'leastconn',
      maxconn: 100,
    });
  });

  it('is every Service with a group, and no other one', () => {
    const world = new ExportWorld().put(
      serviceOf('plain', { labels: {} }),
      serviceOf('by-label'),
      serviceOf('by-annotation', {
        labels: {},
        annotations: { 'platform.koupleless.io/export-groups': 'external, exporter' },
        ports: [{ ...TCP_PORT, port: 1 }],
      }),
    );
    expect(world.namesOf('external')).toEqual(['t1/by-annotation', 't1/by-label']);
    expect(world.namesOf('exporter')).toEqual(['t1/by-annotation']);
    expect(world.namesOf('other')).toEqual([]);
  });

  it('goes with its label, and with itself', () => {
    const world = new ExportWorld().put(serviceOf('shop'), serviceOf('cart', { ports: [{ port: 1 }] }));
    world.put(serviceOf('shop', { labels: {} }));
    expect(world.namesOf('external')).toEqual(['t1/cart']);
    world.remove(serviceOf('cart'));
    expect(world.namesOf('external')).toEqual([]);
    expect([...world.table.keys()]).toEqual([]);
  });

  it('takes the ports of Pods by their name, in order of address and port, and no Pod without it', () => {
    const ports = [{ ...TCP_PORT, targetPort: 'web' }];
    const world = new ExportWorld().put(serviceOf('shop', { ports }), nodeOf('vnode.a'), nodeOf('vnode.b'));
    const at = (node: string, ip: string, name: string, containerPort: number) => ({
      node,
      ip,
      ports: [{ name, containerPort }],
    });
    world.put(
      podOf('shop', 'shop-1', at('vnode.a', '10.0.0.1', 'admin', 1)),
      podOf('shop', 'shop-2', at('vnode.b', '10.0.0.2', 'web', 9090)),
      podOf('shop', 'shop-3', at('vnode.a', '10.0.0.1', 'web', 9092)),
      podOf('shop', 'shop-4', at('vnode.a', '10.0.0.1', 'web', 9091)),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:9091', '10.0.0.1:9092', '10.0.0.2:9090']);
  });

  it('takes the port of a Pod by its name', () => {
    const ports = [{ ...TCP_PORT, targetPort: 'web' }];
    const world = new ExportWorld().put(serviceOf('shop', { ports }), nodeOf('vnode.a'), nodeOf('vnode.b'));
    world.put(
      podOf('shop', 'shop-1', { node: 'vnode.a', ports: [{ name: 'web', containerPort: 9090 }] }),
      podOf('shop', 'shop-2', { node: 'vnode.b', ports: [{ name: 'admin', containerPort: 1 }] }),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:9090']);
  });

  it('tells nobody what has not changed', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 2));
    world.changes.length = 0;
    world.put(serviceOf('shop'), ...fleet('shop', 2));
    expect(world.changes).toEqual([]);
    const { version } = world.table;
    world.put(podOf('other', 'other-1'));
    expect(world.table.version).toBe(version);
    world.put(podOf('shop', 'shop-1', { isReady: false }));
    expect(world.table.version).toBeGreaterThan(version);
  });

  it('never shows an empty list while it is edited', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 2));
    const seen: number[] = [];
    world.table.addListener(() => seen.push(world.backends('t1/shop').length));
    world.put(serviceOf('shop', { labels: { BCSGROUP: 'external', BCSBALANCE: 'source' } }));
    world.put(serviceOf('shop', { ports: [{ ...TCP_PORT, targetPort: 9090 }] }));
    expect(seen).toEqual([2, 2]);
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:9090', '10.0.0.2:9090']);
  });

  it('of a name that is used again is another one', () => {
    const world = new ExportWorld().put(serviceOf('shop'));
    world.put(serviceOf('shop', { uid: 'another' }));
    expect(world.table.get('t1/shop')?.uid).toBe('another');
  });

  it('does not reach another namespace', () => {
    const world = new ExportWorld().put(serviceOf('shop', { namespace: 't2' }), ...fleet('shop', 2));
    expect(world.backends('t2/shop')).toEqual([]);
  });

  it('without a selector has no backends: it would be all Pods', () => {
    const world = new ExportWorld().put(serviceOf('shop', { selector: {} }), ...fleet('shop', 2));
    expect(world.backends('t1/shop')).toEqual([]);
    expect(world.table.get('t1/shop')?.view.faults).toEqual(['spec.selector: an exported Service must select Pods']);
  });
});

describe('backends', () => {
  it('are the Pods that are Ready on a base', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 1));
    const node = nodeOf('vnode.here');
    for (const state of [
      { isReady: false },
      { isDeleting: true },
      { node: 'worker-1' },
      { labels: { app: 'other' } },
    ]) {
      world.put(node, podOf('shop', 'shop-2', { node: 'vnode.here', ...state }));
      expect([state, world.backends('t1/shop')]).toEqual([state, ['10.0.0.1:8080']]);
    }
    world.put(podOf('shop', 'shop-2', { node: 'vnode.here' }));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080', '10.0.0.2:8080']);
    world.remove(podOf('shop', 'shop-1'));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.2:8080']);
  });

  it('stay while their base is silent, and while no controller reaches the API server', () => {
    for (const ready of ['False', 'Unknown'] as const) {
      const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 1));
      world.put(nodeOf('vnode.shop-1', ready));
      expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      world.put(podOf('shop', 'shop-1', { isReady: false, isServing: true }));
      expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      world.put(podOf('shop', 'shop-1', { isReady: false, isServing: true, gates: { 'example.com/gate': 'False' } }));
      expect(world.backends('t1/shop')).toEqual([]);
      world.put(podOf('shop', 'shop-1', { isReady: false, isServing: true, gates: { 'example.com/gate': 'True' } }));
      expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      // The base is given up.
      world.remove(nodeOf('vnode.shop-1'));
      expect(world.backends('t1/shop')).toEqual([]);
    }
  });

  it('stay though their Pod is deleted while no controller writes for their Node: nobody uninstalls them', () => {
    for (const dropsLost of [false, true]) {
      const world = new ExportWorld({ dropsLost }).put(serviceOf('shop'), ...fleet('shop', 1));
      const deleted = { isReady: false, isServing: true, isDeleting: true };
      world.put(nodeOf('vnode.shop-1', 'Unknown'), podOf('shop', 'shop-1', { ...deleted, isDeleting: false }));
      expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      world.put(podOf('shop', 'shop-1', deleted));
      expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      // A controller is back, and decides when it leaves.
      world.put(nodeOf('vnode.shop-1'));
      expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      world.put(nodeOf('vnode.shop-1', 'False'));
      expect(world.backends('t1/shop')).toEqual(dropsLost ? [] : ['10.0.0.1:8080']);
      world.put(nodeOf('vnode.shop-1'), podOf('shop', 'shop-1', { ...deleted, reason: 'PodDeleted' }));
      expect(world.backends('t1/shop')).toEqual([]);
    }
  });

  it('go with a silent base where that is wanted', () => {
    const world = new ExportWorld({ dropsLost: true }).put(serviceOf('shop'), ...fleet('shop', 2));
    const lost = { isReady: false, isServing: true, reason: 'BaseUnreachable' };
    world.put(nodeOf('vnode.shop-1', 'False'));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.2:8080']);
    world.put(podOf('shop', 'shop-1', lost));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.2:8080']);
    world.put(nodeOf('vnode.shop-1'), podOf('shop', 'shop-1'));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080', '10.0.0.2:8080']);
  });

  it.each([
    { dropsLost: false, isNodeFirst: false },
    { dropsLost: false, isNodeFirst: true },
    { dropsLost: true, isNodeFirst: false },
    { dropsLost: true, isNodeFirst: true },
  ])('stay when controllers go, and when they come back: %j', ({ dropsLost, isNodeFirst }) => {
    const world = new ExportWorld({ dropsLost }).put(serviceOf('shop'), ...fleet('shop', 1));
    // What kube-controller-manager writes has no reason.
    const gone = [nodeOf('vnode.shop-1', 'Unknown'), podOf('shop', 'shop-1', { isReady: false, isServing: true })];
    const back = [nodeOf('vnode.shop-1'), podOf('shop', 'shop-1')];
    for (const changes of [gone, back]) {
      for (const change of isNodeFirst ? changes : changes.toReversed()) {
        world.put(change);
        expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
      }
    }
  });

  it('that are not Ready on a base that is reachable get nothing, although their containers are', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 1));
    // The base is back, and its modules are not read yet.
    world.put(podOf('shop', 'shop-1', { isReady: false, isServing: true, reason: 'BaseUnreachable' }));
    expect(world.backends('t1/shop')).toEqual([]);
  });

  it('of one address are one, with the label of the younger Pod; with shares, one for each label', () => {
    const world = new ExportWorld().put(serviceOf('shop'), nodeOf('vnode.a'), nodeOf('vnode.b'));
    const onOne = { node: 'vnode.a', ip: '10.0.0.1' };
    world.put(
      podOf('shop', 'shop-1', onOne),
      podOf('shop', 'shop-2', { ...onOne, version: '2.0.0', createdAt: '2026-01-02T00:00:00Z' }),
      podOf('shop', 'shop-3', { node: 'vnode.b' }),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080', '10.0.0.3:8080']);
    const { backends } = world.table.get('t1/shop')?.view.exported.ports[0] ?? {};
    expect(backends?.[0]?.label).toEqual(['2.0.0']);
    world.put(weighted({ '1.0.0': '9', '2.0.0': '1' }));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080*9', '10.0.0.1:8080*2', '10.0.0.3:8080*9']);
  });

  it('are never the arklet of a base', () => {
    const world = new ExportWorld().put(
      serviceOf('shop', { ports: [{ ...TCP_PORT, targetPort: 1238 }] }),
      nodeOf('vnode.shop-1', 'True', 1238),
      podOf('shop', 'shop-1'),
    );
    expect(world.backends('t1/shop')).toEqual([]);
    expect(world.table.get('t1/shop')?.view.faults).toEqual([
      'spec.ports[tcp].targetPort: is the port of the arklet of a base',
    ]);
    world.put(nodeOf('vnode.shop-1', 'True', 1239));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:1238']);
  });

  it('are never the arklet of a base, and still the same port of another base', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 2));
    world.put(nodeOf('vnode.shop-1', 'True', 8080));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.2:8080']);
  });

  it.each([
    ['has no address yet', { podIP: undefined }],
    ['has ended', { phase: 'Succeeded' }],
    ['has failed', { phase: 'Failed' }],
  ])('are no Pod that %s', (_what, change) => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 1), nodeOf('vnode.shop-2'));
    const pod = podOf('shop', 'shop-2');
    world.put({ ...pod, status: { ...pod.status, ...change } } as typeof pod);
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
  });

  it.each([
    [2_500, 0, 5_000],
    [2_501, 1, 5_000],
  ])('are 5,000 in all ports at most: of two ports and %i Pods', (pods, faults, count) => {
    const ports = [TCP_PORT, { name: 'z', port: 2, targetPort: 8081 }];
    const world = new ExportWorld().put(serviceOf('shop', { ports }), nodeOf('vnode.a'));
    world.put(
      ...Array.from({ length: pods }, (_, index) =>
        podOf('shop', `shop-${index}`, { node: 'vnode.a', ip: `10.1.${index >> 8}.${index & 255}` }),
      ),
    );
    expect(world.backends('t1/shop', 0).length + world.backends('t1/shop', 1).length).toBe(count);
    const found = world.table.get('t1/shop')?.view.faults ?? [];
    expect(found).toHaveLength(faults);
    for (const fault of found) expect(fault).toMatch(/^spec.ports\[z\]: more than 5000 backends/);
  });

  it('are left out of all further ports when the first ones have 5,000, and a port that no Pod has is no fault', () => {
    const named = { name: 'zz', port: 3, targetPort: 'nowhere' };
    const ports = [TCP_PORT, { name: 'z', port: 2, targetPort: 8081 }, named];
    const world = new ExportWorld().put(serviceOf('shop', { ports }), nodeOf('vnode.a'));
    world.put(
      ...Array.from({ length: 5_000 }, (_, index) =>
        podOf('shop', `shop-${index}`, { node: 'vnode.a', ip: `10.1.${index >> 8}.${index & 255}` }),
      ),
    );
    expect([0, 1, 2].map((port) => world.backends('t1/shop', port).length)).toEqual([5_000, 0, 0]);
    const [fault, ...further] = world.table.get('t1/shop')?.view.faults ?? [];
    expect(fault).toMatch(/^spec.ports\[z\]: more than 5000 backends/);
    expect(further).toEqual([]);
  });

  it('are never the arklet of another base at the same address', () => {
    const ip = '10.0.0.1';
    const world = new ExportWorld().put(
      serviceOf('shop', { ports: [{ ...TCP_PORT, targetPort: 1238 }] }),
      nodeOf('vnode.shop-1', 'True', 1239, ip),
      podOf('shop', 'shop-1', { ip }),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:1238']);
    world.put(nodeOf('vnode.bank-1', 'True', 1238, ip));
    expect(world.backends('t1/shop')).toEqual([]);
    world.put(nodeOf('vnode.bank-1', 'True', 1240, ip));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:1238']);
    world.put(nodeOf('vnode.bank-1', 'False', 1238, ip));
    expect(world.backends('t1/shop')).toEqual([]);
    world.remove(nodeOf('vnode.bank-1'));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:1238']);
  });

  it.each([
    ['10.0.0.1', '::ffff:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1', '10.0.0.1'],
    ['fd00::a', 'FD00:0:0:0:0:0:0:A', 'fd00::a'],
  ])('are never the arklet of a base whose address is written in another way: %s and %s', (ofNode, ofPod, ip) => {
    const world = new ExportWorld().put(
      serviceOf('shop', { ports: [{ ...TCP_PORT, targetPort: 1238 }] }),
      nodeOf('vnode.bank-1', 'True', 1238, ofNode),
      nodeOf('vnode.shop-1', 'True', 1239, '10.0.0.9'),
      podOf('shop', 'shop-1', { ip: ofPod }),
    );
    expect(world.backends('t1/shop')).toEqual([]);
    world.put(nodeOf('vnode.bank-1', 'True', 1240, ofNode), nodeOf('vnode.shop-2'));
    // Two Pods on one base are one backend.
    world.put(podOf('shop', 'shop-2', { ip: ofNode }));
    expect(world.backends('t1/shop')).toEqual([`${ip}:1238`]);
  });

  it('of a base that reports the address of another one are of its own Services only', () => {
    const world = new ExportWorld().put(
      serviceOf('bank', { ports: [{ port: 1, targetPort: 8080 }] }),
      serviceOf('shop'),
      nodeOf('vnode.bank-1', 'True', 1238, '10.0.0.1'),
      podOf('bank', 'bank-1', { ip: '10.0.0.1' }),
      nodeOf('vnode.liar', 'True', 1239, '10.0.0.1'),
      podOf('shop', 'shop-1', { ip: '10.0.0.1', node: 'vnode.liar' }),
    );
    const both = () => [world.backends('t1/bank'), world.backends('t1/shop')];
    expect(both()).toEqual([['10.0.0.1:8080'], ['10.0.0.1:8080']]);
    world.put(nodeOf('vnode.liar', 'False', 1239, '10.0.0.1'));
    world.remove(podOf('shop', 'shop-1', { ip: '10.0.0.1', node: 'vnode.liar' }), nodeOf('vnode.liar'));
    expect(both()).toEqual([['10.0.0.1:8080'], []]);
  });

  it('follow a Pod that changes its labels', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 1));
    world.put(podOf('shop', 'shop-1', { labels: { app: 'debug' } }));
    expect(world.backends('t1/shop')).toEqual([]);
    world.put(podOf('shop', 'shop-1'));
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080']);
  });
});

describe('weights', () => {
  function shares(weights: Record<string, string>, counts: Record<string, number>): Record<string, number> {
    let next = 1;
    const pods = Object.entries(counts).flatMap(([version, count]) => {
      next += count;
      return fleet('shop', count, { version }, next - count);
    });
    const world = new ExportWorld().put(weighted(weights), ...pods);
    const { backends = [] } = world.table.get('t1/shop')?.view.exported.ports[0] ?? {};
    const total = backends.reduce((sum, { weight }) => sum + weight, 0);
    const found: Record<string, number> = {};
    for (const { label, weight } of backends) {
      const name = label[0] ?? '';
      found[name] = (found[name] ?? 0) + weight / total;
    }
    return found;
  }

  it('are whole and small: 9 to 1 over three Pods and one', () => {
    const world = new ExportWorld().put(
      weighted({ '1.0.0': '9', '2.0.0': '1' }),
      ...fleet('shop', 3),
      ...fleet('shop', 1, { version: '2.0.0' }, 4),
    );
    expect(world.backends('t1/shop')).toEqual([
      '10.0.0.1:8080*3',
      '10.0.0.2:8080*3',
      '10.0.0.3:8080*3',
      '10.0.0.4:8080',
    ]);
    expect(world.table.get('t1/shop')?.view.exported.serviceWeight).toEqual({ '1.0.0': 9, '2.0.0': 1 });
  });

  it.each([
    [
      { '1.0.0': '9', '2.0.0': '1' },
      { '1.0.0': 3, '2.0.0': 3 },
    ],
    [
      { '1.0.0': '9', '2.0.0': '1' },
      { '1.0.0': 7, '2.0.0': 2 },
    ],
    [
      { '1.0.0': '50', '2.0.0': '50' },
      { '1.0.0': 19, '2.0.0': 1 },
    ],
    [
      { '1.0.0': '97', '2.0.0': '2', '3.0.0': '1' },
      { '1.0.0': 13, '2.0.0': 11, '3.0.0': 1 },
    ],
    [
      { '1.0.0': '1000000', '2.0.0': '1000000' },
      { '1.0.0': 1, '2.0.0': 17 },
    ],
  ])('give %o over %o the shares that were named', (weights, counts) => {
    const total = Object.values(weights).reduce((sum, weight) => sum + Number(weight), 0);
    const found = shares(weights, counts);
    for (const [name, weight] of Object.entries(weights)) {
      expect(Math.abs((found[name] ?? 0) - Number(weight) / total)).toBeLessThan(0.02);
    }
  });

  it('are no more than a balancer takes', () => {
    const world = new ExportWorld().put(
      weighted({ '1.0.0': '1000000', '2.0.0': '1' }),
      ...fleet('shop', 1),
      ...fleet('shop', 2, { version: '2.0.0' }, 2),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080*256', '10.0.0.2:8080', '10.0.0.3:8080']);
  });

  it('are exact as long as they may be, and else no share is beyond 256 or below 1', () => {
    const exact = new ExportWorld().put(
      weighted({ '1.0.0': '256', '2.0.0': '7' }),
      ...fleet('shop', 1),
      ...fleet('shop', 7, { version: '2.0.0' }, 2),
    );
    expect(exact.backends('t1/shop').slice(0, 2)).toEqual(['10.0.0.1:8080*256', '10.0.0.2:8080']);
    const rounded = new ExportWorld().put(
      weighted({ '1.0.0': '1000', '2.0.0': '3' }),
      ...fleet('shop', 1),
      ...fleet('shop', 7, { version: '2.0.0' }, 2),
    );
    expect(rounded.backends('t1/shop').slice(0, 2)).toEqual(['10.0.0.1:8080*256', '10.0.0.2:8080']);
  });

  it('are small over many Pods too: 9 to 1 over two hundred each', () => {
    const world = new ExportWorld().put(weighted({ '1.0.0': '9', '2.0.0': '1' }), nodeOf('vnode.a'));
    world.put(
      ...Array.from({ length: 400 }, (_, index) =>
        podOf('shop', `shop-${index}`, {
          node: 'vnode.a',
          ip: `10.1.${index >> 8}.${index & 255}`,
          version: index < 200 ? '1.0.0' : '2.0.0',
        }),
      ),
    );
    const found = world.table.get('t1/shop')?.view.exported.ports[0]?.backends ?? [];
    expect(new Set(found.map(({ label, weight }) => `${label} ${weight}`))).toEqual(new Set(['1.0.0 9', '2.0.0 1']));
  });

  it('are 1 for a Pod without the label, which shows none', () => {
    const annotations = { 'platform.koupleless.io/weight-label': 'team' };
    const world = new ExportWorld().put(
      weighted({ summer: '3', wingame: '7' }, { annotations }),
      ...fleet('shop', 1, { labels: { team: 'summer' } }),
      ...fleet('shop', 1, {}, 2),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080*3', '10.0.0.2:8080']);
    expect(world.table.get('t1/shop')?.view.exported.ports[0]?.backends[1]?.label).toEqual([]);
    expect(world.table.get('t1/shop')?.view.unknownWeights).toEqual([]);
  });

  it('of 0 alone leave no backend', () => {
    const world = new ExportWorld().put(weighted({ '1.0.0': '0', '2.0.0': '0' }), ...fleet('shop', 2));
    expect(world.backends('t1/shop')).toEqual([]);
  });

  it('of 0 take all requests away, also where it is the only one', () => {
    const pods = [...fleet('shop', 1), ...fleet('shop', 1, { version: '2.0.0' }, 2)];
    for (const weights of [{ '1.0.0': '9', '2.0.0': '0' }, { '2.0.0': '0' }]) {
      expect(new ExportWorld().put(weighted(weights), ...pods).backends('t1/shop')).toEqual(['10.0.0.1:8080']);
    }
  });

  it('that are not named are 1, and are reported', () => {
    const world = new ExportWorld().put(
      weighted({ '1.0.0': '2', '2.0.0': '1' }),
      ...fleet('shop', 1),
      ...fleet('shop', 1, { version: '3.0.0' }, 2),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080*2', '10.0.0.2:8080']);
    expect(world.table.get('t1/shop')?.view.unknownWeights).toEqual(['3.0.0']);
  });

  it('that are not named are reported beside one share alone only where no Pod has it', () => {
    const unknownOf = (weights: Record<string, string>): unknown =>
      new ExportWorld()
        .put(weighted(weights), ...fleet('shop', 1), ...fleet('shop', 1, { version: '3.0.0' }, 2))
        .table.get('t1/shop')?.view.unknownWeights;
    expect(unknownOf({ '1.0.O': '9' })).toEqual(['1.0.0', '3.0.0']);
    expect(unknownOf({ '1.0.0': '9' })).toEqual([]);
    expect(unknownOf({ '1.0.0': '0' })).toEqual([]);
    expect(unknownOf({})).toEqual([]);
  });

  it('may be of another label', () => {
    const annotations = { 'platform.koupleless.io/weight-label': 'team' };
    const world = new ExportWorld().put(
      weighted({ summer: '3', wingame: '7' }, { annotations }),
      ...fleet('shop', 1, { labels: { team: 'summer' } }),
      ...fleet('shop', 1, { labels: { team: 'wingame' } }, 2),
    );
    expect(world.backends('t1/shop')).toEqual(['10.0.0.1:8080*3', '10.0.0.2:8080*7']);
  });
});

describe('conflicts', () => {
  const older = serviceOf('b-older', { createdAt: '2026-01-01T00:00:00Z' });
  const younger = serviceOf('a-younger', { createdAt: '2026-01-01T00:00:01Z' });

  it('are won by the older Service, and end with it', () => {
    const world = new ExportWorld().put(younger);
    expect(world.namesOf('external')).toEqual(['t1/a-younger']);
    world.put(older);
    expect(world.namesOf('external')).toEqual(['t1/b-older']);
    expect(world.table.get('t1/a-younger')?.conflicts.get('external')).toEqual({
      winner: 't1/b-older',
      what: 'TCP port 28800',
    });
    world.remove(older);
    expect(world.namesOf('external')).toEqual(['t1/a-younger']);
    expect(world.table.get('t1/a-younger')?.conflicts.size).toBe(0);
  });

  it.each([
    ['/x/', '/x'],
    ['/', '/'],
    ['/%78', '/x'],
    ['/a%3Fb', '/a%3fb'],
  ])('are about paths that mean the same: %s and %s', (first, second) => {
    const described = (path: string) => ({
      'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName: 'shop.example.com', path } }),
    });
    const world = new ExportWorld().put(
      serviceOf('older', { ports: [HTTP_PORT], annotations: described(first) }),
      serviceOf('younger', { ports: [HTTP_PORT], annotations: described(second), createdAt: '2026-01-02T00:00:00Z' }),
    );
    expect(world.namesOf('external')).toEqual(['t1/older']);
    expect(world.table.get('t1/older')?.view.exported.ports[0]?.path).toBe(first);
  });

  it('are there between HTTP and HTTPS on one port, which a balancer cannot tell apart', () => {
    const described = (domainName: string) => ({
      'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName } }),
    });
    const port = (appProtocol: string) => [{ ...HTTP_PORT, appProtocol }];
    const younger = { createdAt: '2026-01-02T00:00:00Z' };
    const world = new ExportWorld().put(
      serviceOf('a', { ports: port('http'), annotations: described('a.example.com') }),
      serviceOf('b', { ports: port('http'), annotations: described('b.example.com'), ...younger }),
      serviceOf('c', { ports: port('https'), annotations: described('c.example.com'), ...younger }),
    );
    expect(world.namesOf('external')).toEqual(['t1/a', 't1/b']);
    expect(world.table.get('t1/c')?.conflicts.get('external')).toEqual({
      winner: 't1/a',
      what: 'port 80 for another protocol',
    });
  });

  describe('of namespaces about a host', () => {
    const described = (path: string) => ({
      'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName: 'shop.example.com', path } }),
    });
    const of = (name: string, namespace: string, path: string, day: number) =>
      serviceOf(name, {
        namespace,
        ports: [HTTP_PORT],
        annotations: described(path),
        createdAt: `2026-01-0${day}T00:00:00Z`,
      });
    const tenancyOf = (...namespaces: string[]) => ({
      metadata: { name: 'limits', namespace: 't1', uid: 'tenancy', resourceVersion: '1' },
      spec: { exportSharedHosts: [{ host: 'shop.example.com', namespaces }] },
    });

    it('are won by the one that has it first, with all its paths', () => {
      const world = new ExportWorld().put(of('own', 't1', '/', 1), of('more', 't1', '/more', 3));
      world.put(of('guest', 't2', '/guest', 2));
      expect(world.namesOf('external')).toEqual(['t1/more', 't1/own']);
      expect(world.table.get('t2/guest')?.conflicts.get('external')).toEqual({
        winner: 't1/own',
        what: 'host shop.example.com',
      });
      world.remove(of('own', 't1', '/', 1), of('more', 't1', '/more', 3));
      expect(world.namesOf('external')).toEqual(['t2/guest']);
    });

    it.each([
      ['*.shop.example.com', 'pay.shop.example.com', true],
      ['pay.shop.example.com', '*.shop.example.com', true],
      ['*.shop.example.com', '*.eu.shop.example.com', true],
      ['*.shop.example.com', '*.example.com', true],
      ['*.shop.example.com', 'shop.example.com', false],
      ['*.shop.example.com', 'my-shop.example.com', false],
      ['pay.shop.example.com', 'my.shop.example.com', false],
    ])('are there where a wildcard covers the other: %s and %s: %s', (first, second, isConflict) => {
      const ofHost = (name: string, namespace: string, domainName: string, day: number) =>
        serviceOf(name, {
          namespace,
          ports: [HTTP_PORT],
          annotations: { 'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName } }) },
          createdAt: `2026-01-0${day}T00:00:00Z`,
        });
      const world = new ExportWorld().put(ofHost('own', 't1', first, 1), ofHost('late', 't2', second, 2));
      expect(world.namesOf('external')).toEqual(isConflict ? ['t1/own'] : ['t1/own', 't2/late']);
      world.remove(ofHost('late', 't2', second, 2)).put(ofHost('same', 't1', second, 2));
      expect(world.namesOf('external')).toEqual(['t1/own', 't1/same']);
      world.put(ofHost('late', 't2', second, 3));
      expect(world.table.get('t2/late')?.conflicts.get('external')?.winner).toMatch(/^t1\//);
    });

    it('are none with a guest, for as long as it is one', () => {
      const world = new ExportWorld().put(of('own', 't1', '/', 1), of('guest', 't2', '/guest', 2));
      world.share(tenancyOf('t2'));
      expect(world.namesOf('external')).toEqual(['t1/own', 't2/guest']);
      world.share(tenancyOf('t3'));
      expect(world.namesOf('external')).toEqual(['t1/own']);
    });

    it('that share it go by its record too: a guest loses its place with the share', () => {
      const world = new ExportWorld().put(of('own', 't1', '/', 2), of('guest', 't2', '/guest', 1));
      world.share(tenancyOf('t2')).publish('t1/own', 't2/guest');
      expect(world.exports.get('t2/guest')?.status?.guestAt).toEqual(['shop.example.com']);
      world.share(tenancyOf('t3'));
      expect(world.namesOf('external')).toEqual(['t1/own']);
    });

    it('that both have it by their records leave it to the older Service', () => {
      const world = new ExportWorld()
        .put(of('own', 't1', '/', 1))
        .publish('t1/own')
        .remove(of('own', 't1', '/', 1));
      world
        .put(of('other', 't2', '/other', 2))
        .publish('t2/other')
        .put(of('own', 't1', '/', 1));
      expect(world.namesOf('external')).toEqual(['t1/own']);
    });
  });

  it('take nothing from a Service that has it, however old the other one is', () => {
    const world = new ExportWorld().put(younger).publish('t1/a-younger').put(older);
    expect(world.namesOf('external')).toEqual(['t1/a-younger']);
    expect(world.table.get('t1/b-older')?.conflicts.get('external')).toEqual({
      winner: 't1/a-younger',
      what: 'TCP port 28800',
    });
    world.publish('t1/b-older').remove(younger);
    expect(world.namesOf('external')).toEqual(['t1/b-older']);
    world.put(younger);
    expect(world.namesOf('external'), 'the ExportService of the former one is still there').toEqual(['t1/a-younger']);
    const another = serviceOf('a-younger', { uid: 'another', createdAt: '2026-01-01T00:00:02Z' });
    world.put(another);
    expect(world.namesOf('external'), 'a former Service of this name had it').toEqual(['t1/b-older']);
  });

  it('take nothing from one that has it and asks for more, nor does that give it what another one has', () => {
    const port = (number: number) => ({ name: `p${number}`, port: number });
    const holder = (...ports: number[]) =>
      serviceOf('holder', { ports: ports.map(port), createdAt: '2026-01-01T00:00:05Z' });
    const other = serviceOf('other', { ports: [port(2)], createdAt: '2026-01-01T00:00:06Z' });
    const waiting = serviceOf('waiting', { ports: [port(1)] });
    const world = new ExportWorld().put(holder(1), other).publish('t1/holder', 't1/other');
    world.put(waiting).publish('t1/waiting');
    world.put(holder(1, 3));
    expect(world.namesOf('external')).toEqual(['t1/holder', 't1/other']);
    world.put(holder(1, 2));
    // Until its ExportService says that it is left out, it keeps what it has.
    expect(world.namesOf('external')).toEqual(['t1/other']);
    world.publish('t1/holder');
    expect(world.namesOf('external')).toEqual(['t1/other', 't1/waiting']);
  });

  it('end where two have what the other one wants: the older one gets it', () => {
    const port = (number: number) => ({ name: `p${number}`, port: number });
    const of = (name: string, day: number, ...ports: number[]) =>
      serviceOf(name, { ports: ports.map(port), createdAt: `2026-01-0${day}T00:00:00Z` });
    const world = new ExportWorld().put(of('a', 2, 1), of('b', 1, 2)).publish('t1/a', 't1/b');
    world.put(of('a', 2, 1, 2), of('b', 1, 1, 2)).publish('t1/a', 't1/b');
    expect(world.namesOf('external')).toEqual(['t1/b']);
    world.publish('t1/a', 't1/b');
    expect(world.namesOf('external')).toEqual(['t1/b']);
  });

  it('are of one group, also for one that has a place in another group', () => {
    const annotations = { 'platform.koupleless.io/export-groups': 'exporter' };
    const inBoth = serviceOf('a-younger', { annotations, createdAt: '2026-01-01T00:00:01Z' });
    const world = new ExportWorld().put(older).publish('t1/b-older').put(inBoth).publish('t1/a-younger');
    expect(world.exports.get('t1/a-younger')?.status?.leftOutOf).toEqual(['external']);
    const oldest = serviceOf('oldest', { annotations, createdAt: '2025-01-01T00:00:00Z' });
    world.put(oldest);
    expect(world.namesOf('exporter')).toEqual(['t1/a-younger']);
    expect(world.namesOf('external')).toEqual(['t1/b-older']);
  });

  it('tell of a place that becomes free when an ExportService says so', () => {
    const world = new ExportWorld().put(younger).publish('t1/a-younger').put(older);
    world.changes.length = 0;
    const metadata = { name: 'a-younger', namespace: 't1', uid: 'of-uid-a-younger', resourceVersion: '1000000' };
    world.exports.deliver({ type: 'DELETED', object: { metadata } as never });
    world.clock.advance(100);
    expect(world.changes).toEqual([['t1/a-younger', 't1/b-older']]);
    expect(world.namesOf('external')).toEqual(['t1/b-older']);
  });

  it('are judged again only when an ExportService says something else about its place', () => {
    const world = new ExportWorld().put(younger, ...fleet('a-younger', 1)).publish('t1/a-younger');
    const { version } = world.table;
    world.put(...fleet('a-younger', 2));
    expect(world.table.version).toBe(version + 1);
    world.publish('t1/a-younger');
    expect(world.table.version).toBe(version + 1);
  });

  it('are of one group', () => {
    const annotations = { 'platform.koupleless.io/export-groups': 'exporter' };
    const both = serviceOf('a-younger', { annotations, createdAt: '2026-01-01T00:00:01Z' });
    const world = new ExportWorld().put(older, both);
    expect(world.namesOf('external')).toEqual(['t1/b-older']);
    expect(world.namesOf('exporter')).toEqual(['t1/a-younger']);
    // Out of the group in which it has lost.
    world.put(serviceOf('a-younger', { labels: {}, annotations, createdAt: '2026-01-01T00:00:01Z' }));
    expect(world.table.get('t1/a-younger')?.conflicts.size).toBe(0);
  });

  it('leave a third Service alone that wants what only the loser has', () => {
    const ports = [TCP_PORT, { name: 'more', port: 9000 }];
    const loser = serviceOf('loser', { ports, createdAt: '2026-01-01T00:00:01Z' });
    const third = serviceOf('third', { ports: [{ port: 9000 }], createdAt: '2026-01-01T00:00:02Z' });
    expect(new ExportWorld().put(older, loser, third).namesOf('external')).toEqual(['t1/b-older', 't1/third']);
  });

  it.each([
    ['the same host and path', [HTTP_PORT], [HTTP_PORT], '/x', '/x', true],
    ['another path', [HTTP_PORT], [HTTP_PORT], '/x', '/y', false],
    ['another port of HTTP', [HTTP_PORT], [{ ...HTTP_PORT, port: 8080 }], '/x', '/x', false],
    ['TCP on the port of HTTP', [HTTP_PORT], [{ name: 'http', port: 80 }], '/x', undefined, true],
    ['HTTP on a port of TCP', [{ name: 'http', port: 80 }], [HTTP_PORT], undefined, '/x', true],
    [
      'UDP beside TCP',
      [{ name: 'http', port: 80 }],
      [{ name: 'http', port: 80, protocol: 'UDP' }],
      undefined,
      undefined,
      false,
    ],
    ['UDP twice', [{ port: 53, protocol: 'UDP' }], [{ port: 53, protocol: 'UDP' }], undefined, undefined, true],
  ] as const)('are about %s', (_name, first, second, firstPath, secondPath, isConflict) => {
    const describedBy = (path: string | undefined) =>
      path === undefined
        ? {}
        : { 'platform.koupleless.io/export-ports': JSON.stringify({ http: { domainName: 'a.example.com', path } }) };
    const world = new ExportWorld().put(
      serviceOf('a', { ports: [...first], annotations: describedBy(firstPath) }),
      serviceOf('b', { ports: [...second], annotations: describedBy(secondPath), createdAt: '2026-01-02T00:00:00Z' }),
    );
    expect(world.namesOf('external')).toEqual(isConflict ? ['t1/a'] : ['t1/a', 't1/b']);
  });

  it('leave out every younger one of several', () => {
    const many = ['d', 'c', 'b'].map((name, day) => serviceOf(name, { createdAt: `2026-01-0${day + 2}T00:00:00Z` }));
    const world = new ExportWorld().put(older, ...many);
    expect(world.namesOf('external')).toEqual(['t1/b-older']);
    for (const name of ['b', 'c', 'd'])
      expect(world.table.get(`t1/${name}`)?.conflicts.get('external')?.winner).toBe('t1/b-older');
  });

  it('between Services of one second go by their names, as every replica sees them', () => {
    const twins = ['x', 'y'].map((name) => serviceOf(name));
    for (const order of [twins, twins.toReversed()])
      expect(new ExportWorld().put(...order).namesOf('external')).toEqual(['t1/x']);
  });
});

describe('the status of an ExportService', () => {
  const nowText = '2026-01-01T00:00:10Z';
  function statusOf(world: ExportWorld, key: string, stored?: ReturnType<typeof exportStatusOf>) {
    const entry = world.table.get(key);
    if (entry === undefined) throw new Error(`no entry ${key}`);
    const { view, conflicts, guestAt } = entry;
    return exportStatusOf({ view, conflicts, guestAt, generation: 1, stored, nowText });
  }
  const conditionsOf = (status: ReturnType<typeof exportStatusOf>) =>
    Object.fromEntries(status.conditions.map(({ type, status: isTrue, reason }) => [type, `${isTrue} ${reason}`]));

  it('says that all is well', () => {
    const world = new ExportWorld().put(serviceOf('shop'), ...fleet('shop', 2));
    const status = statusOf(world, 't1/shop');
    expect(conditionsOf(status)).toEqual({
      Conflict: 'False NoConflict',
      Invalid: 'False ValidService',
      Ready: 'True Exported',
      UnknownWeight: 'False AllWeighted',
      WeightsRounded: 'False SharesKept',
    });
    expect(status.summary).toEqual({ groups: 'external', ports: '28800/tcp', backends: 2 });
  });

  it('says what is not', () => {
    const labels = { BCSGROUP: 'external', BCSBALANCE: 'random', 'BCS-WEIGHT-1': '1', 'BCS-WEIGHT-2': '1' };
    const world = new ExportWorld().put(
      serviceOf('b-older'),
      serviceOf('shop', { labels, createdAt: '2026-01-02T00:00:00Z' }),
      ...fleet('shop', 1),
    );
    const status = statusOf(world, 't1/shop');
    expect(conditionsOf(status)).toEqual({
      Conflict: 'True TakenByOther',
      Invalid: 'True InvalidService',
      Ready: 'False Conflict',
      UnknownWeight: 'True NoSuchWeight',
      WeightsRounded: 'False SharesKept',
    });
    expect(status.conditions.map(({ message }) => message)).toEqual([
      'group external: t1/b-older has TCP port 28800',
      'metadata.labels[BCSBALANCE]: "random" is not one of roundrobin, source, leastconn',
      'no group takes it',
      'no BCS-WEIGHT- label for 1.0.0: each has weight 1',
      'every label has the share that it should have',
    ]);
    expect(conditionsOf(statusOf(world, 't1/b-older'))).toMatchObject({ Ready: 'False NoBackends' });
  });

  it('is Ready while one group of several takes it', () => {
    const annotations = { 'platform.koupleless.io/export-groups': 'exporter' };
    const world = new ExportWorld().put(
      serviceOf('b-older'),
      serviceOf('shop', { annotations, createdAt: '2026-01-02T00:00:00Z' }),
      ...fleet('shop', 1),
    );
    expect(conditionsOf(statusOf(world, 't1/shop'))).toMatchObject({
      Conflict: 'True TakenByOther',
      Ready: 'True Exported',
    });
  });

  it('without a group is not in conflict with anybody', () => {
    const world = new ExportWorld().put(serviceOf('shop', { labels: { BCSGROUP: '' } }), ...fleet('shop', 1));
    expect(conditionsOf(statusOf(world, 't1/shop'))).toMatchObject({
      Conflict: 'False NoConflict',
      Invalid: 'True InvalidService',
      Ready: 'True Exported',
    });
  });

  it.each([
    [1_024, 'x'.repeat(1_024)],
    [1_025, `${'x'.repeat(1_023)}…`],
  ])('has messages of 1,024 characters at most: of %i', (length, message) => {
    const world = new ExportWorld().put(serviceOf('shop'));
    const entry = world.table.get('t1/shop');
    if (entry === undefined) throw new Error('no entry');
    const view = { ...entry.view, faults: ['x'.repeat(length)] };
    const status = exportStatusOf({
      view,
      conflicts: new Map(),
      guestAt: [],
      generation: 1,
      stored: undefined,
      nowText,
    });
    expect(status.conditions.find(({ type }) => type === 'Invalid')?.message).toBe(message);
  });

  it('says why there is no backend, and what its author may not expect', () => {
    const at = (state: object) => podOf('shop', 'shop-1', { node: 'vnode.a', ...state });
    const readyOf = (world: ExportWorld) => {
      const { status, reason, message } =
        statusOf(world, 't1/shop').conditions.find(({ type }) => type === 'Ready') ?? ({} as never);
      return [status, reason, message];
    };
    const put = (service: object, pod = at({})) =>
      readyOf(new ExportWorld().put(serviceOf('shop', service), nodeOf('vnode.a'), pod));
    expect(put({}, at({ isReady: false }))).toEqual(['False', 'NoBackends', 'no selected Pod is ready on a base']);
    const nowhere = at({});
    const { podIP: _, ...status } = nowhere.status ?? {};
    expect(put({}, { ...nowhere, status } as never).slice(0, 2)).toEqual(['False', 'NoPodAddress']);
    expect(put({ ports: [HTTP_PORT] })).toEqual(['False', 'NoValidPort', expect.stringContaining('condition Invalid')]);
    const web = { ...TCP_PORT, targetPort: 'web' };
    expect(put({ ports: [web] })).toEqual([
      'False',
      'NoSuchTargetPort',
      expect.stringContaining('spec.ports[tcp].targetPort: no selected Pod has a port web of TCP'),
    ]);
    const named = (protocol?: string) => at({ ports: [{ name: 'web', containerPort: 8080, protocol }] });
    expect(put({ ports: [web] }, named('UDP'))[1]).toBe('NoSuchTargetPort');
    expect(put({ ports: [web] }, named())).toEqual(['True', 'Exported', 'the Service is exported']);
    expect(put({ ports: [web, { ...TCP_PORT, name: 'other', port: 1 }] })).toEqual([
      'True',
      'Exported',
      expect.stringContaining('spec.ports[tcp].targetPort: no selected Pod has a port web of TCP'),
    ]);
    const weights = { 'BCS-WEIGHT-1.0.0': '0', 'BCS-WEIGHT-2.0.0': '0' };
    expect(put({ labels: { BCSGROUP: 'external', ...weights } })).toEqual([
      'False',
      'AllWeightsZero',
      expect.stringContaining('the share of each backend is 0'),
    ]);
    expect(put({ ports: [{ ...TCP_PORT, appProtocol: 'kubernetes.io/wsx' }] })).toEqual([
      'True',
      'Exported',
      expect.stringContaining('"kubernetes.io/wsx" is none of http, https, tcp, udp, kubernetes.io/h2c'),
    ]);
  });

  it('says which shares could not be kept, and what they are', () => {
    const labels = { BCSGROUP: 'external', 'BCS-WEIGHT-1.0.0': '99', 'BCS-WEIGHT-2.0.0': '1' };
    const world = new ExportWorld().put(serviceOf('shop', { labels }), nodeOf('vnode.a'));
    const canary = Array.from({ length: 50 }, (_, index) =>
      podOf('shop', `shop-${index}`, { node: 'vnode.a', version: '2.0.0', ip: `10.1.0.${index}` }),
    );
    const roundedOf = () => {
      const found = statusOf(world, 't1/shop').conditions.find(({ type }) => type === 'WeightsRounded');
      return [found?.status, found?.message];
    };
    world.put(podOf('shop', 'shop-99', { node: 'vnode.a' }), ...canary.slice(0, 2));
    expect(roundedOf()[0]).toBe('False');
    world.put(...canary);
    expect(roundedOf()).toEqual([
      'True',
      'weights are 1 to 256: port tcp: 1.0.0 has 83.7 %, not 99 %, 2.0.0 has 16.3 %, not 1 %',
    ]);
  });

  it('keeps the time of a condition that does not change', () => {
    const world = new ExportWorld().put(serviceOf('shop'));
    const first = statusOf(world, 't1/shop');
    const stored = { ...first, conditions: first.conditions.map((one) => ({ ...one, lastTransitionTime: 'before' })) };
    world.put(...fleet('shop', 1));
    const times = statusOf(world, 't1/shop', stored).conditions.map((one) => [one.type, one.lastTransitionTime]);
    expect(Object.fromEntries(times)).toEqual({
      Conflict: 'before',
      Invalid: 'before',
      Ready: nowText,
      UnknownWeight: 'before',
      WeightsRounded: 'before',
    });
  });
});

describe('the table', () => {
  it('is not to be acted upon before all caches are whole and calculated, and while a watch is dead', () => {
    const world = new ExportWorld();
    world.pods.synced = false;
    expect(world.table.isCurrent()).toBe(false);
    world.pods.synced = true;
    world.services.deliver({ type: 'PUT', object: serviceOf('shop') });
    expect(world.table.isCurrent()).toBe(false);
    world.clock.advance(100);
    expect(world.table.isCurrent()).toBe(true);
    // Later changes do not make it wait.
    world.services.deliver({ type: 'PUT', object: serviceOf('cart') });
    expect(world.table.isCurrent()).toBe(true);
  });

  it.each(['services', 'pods', 'nodes'] as const)(
    'is not current when the watch of %s is silent for 2.5 minutes',
    (kind) => {
      const world = new ExportWorld();
      expect(world.table.isCurrent()).toBe(true);
      world[kind].eventAgeMs = 149_999;
      expect(world.table.isCurrent()).toBe(true);
      world[kind].eventAgeMs = 150_000;
      expect(world.table.isCurrent()).toBe(false);
      world[kind].eventAgeMs = 0;
      expect(world.table.isCurrent()).toBe(true);
    },
  );

  it('is told of by one listener though another one throws', () => {
    const world = new ExportWorld();
    const heard: string[] = [];
    world.table.addListener(() => {
      throw new Error('a fault');
    });
    world.table.addListener((keys) => heard.push(...keys));
    world.put(serviceOf('shop'));
    expect(heard).toEqual(['t1/shop']);
  });

  it('counts its Services, and measures how long a change takes', async () => {
    const world = new ExportWorld().put(serviceOf('shop'), serviceOf('cart', { ports: [{ port: 1 }] }));
    world.put(serviceOf('cart', { labels: {} }));
    expect((await world.metrics.exportedServices.get()).values[0]?.value).toBe(1);
    const { values } = await world.metrics.exportViewSeconds.get();
    const endingWith = (end: string) => values.find(({ metricName }) => metricName?.endsWith(end))?.value;
    expect([endingWith('_count'), endingWith('_sum')]).toEqual([3, expect.closeTo(0.06, 6)]);
  });

  it('does nothing for a Node of which only its heartbeat has changed', () => {
    const world = new ExportWorld().put(
      serviceOf('shop'),
      nodeOf('vnode.shop-1', 'True', 1238),
      podOf('shop', 'shop-1'),
    );
    world.nodes.deliver({ type: 'PUT', object: nodeOf('vnode.shop-1', 'True', 1238) });
    expect(world.clock.pending).toBe(0);
    world.nodes.deliver({ type: 'PUT', object: nodeOf('vnode.shop-1', 'False', 1238) });
    expect(world.clock.pending).toBe(1);
  });

  it('does nothing for a Service that is not exported, also where it once was', () => {
    const world = new ExportWorld().put(serviceOf('shop'));
    world.put(serviceOf('shop', { labels: {} }));
    world.services.deliver({ type: 'PUT', object: serviceOf('shop', { labels: { other: 'x' } }) });
    expect(world.clock.pending).toBe(0);
  });

  it('gathers the events of a burst', () => {
    const world = new ExportWorld();
    for (const object of [serviceOf('shop'), serviceOf('cart')]) world.services.deliver({ type: 'PUT', object });
    world.clock.advance(19);
    expect(world.changes).toEqual([]);
    world.clock.advance(1);
    expect(world.changes).toEqual([['t1/cart', 't1/shop']]);
  });
});

describe('many Services that have to be calculated', () => {
  const many = Array.from({ length: 6 }, (_, index) => `many-${index}`);
  const selector = { app: 'app' };

  /** Each look at a Service takes 10 ms. */
  function slowWorld(): ExportWorld {
    const world = new ExportWorld();
    const get = world.services.get.bind(world.services);
    world.services.get = (key) => {
      world.clock.stopFor(10);
      return get(key);
    };
    return world;
  }

  it('since a Pod of theirs has changed are so in slices of 20 ms, in which each namespace has its turn', () => {
    const world = slowWorld();
    world.put(...many.map((name) => serviceOf(name, { namespace: 'large', selector })));
    world.put(serviceOf('one', { namespace: 'small', selector }), nodeOf('vnode.app-1'));
    world.changes.splice(0);
    for (const namespace of ['large', 'small']) {
      const pod = podOf('app', 'app-1');
      world.pods.deliver({ type: 'PUT', object: { ...pod, metadata: { ...pod.metadata, namespace } } });
    }
    world.clock.advance(100);
    expect(world.changes).toEqual([
      ['large/many-0', 'small/one'],
      ['large/many-1', 'large/many-2'],
      ['large/many-3', 'large/many-4'],
      ['large/many-5'],
    ]);
  });

  it('since they are new are so together, for the oldest gets what several want', () => {
    const world = slowWorld();
    world.put(...many.map((name, index) => serviceOf(name, { createdAt: `2026-01-01T00:00:0${9 - index}Z` })));
    expect(world.changes).toEqual([many.map((name) => `t1/${name}`)]);
    expect(world.namesOf('external')).toEqual(['t1/many-5']);
  });
});
