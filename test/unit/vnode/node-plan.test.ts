import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { projectNode } from '../../../src/kinds/vnode-object.ts';
import type { NodeObject } from '../../../src/kube/objects.ts';
import { isRoutable } from '../../../src/vnode/address.ts';
import { arkletPortOf, type NodeFacts, newNodeOf, nodeMemoryOf, ttlSecondsOf } from '../../../src/vnode/node-object.ts';
import { type NodePlanInput, planNode, showsMetaspace, usablePatchOf } from '../../../src/vnode/node-plan.ts';
import { baseInfoOf } from '../../../tunnels/arklet/convert.ts';
import { parse, published } from '../../../tunnels/arklet/parse.ts';
import { readHeart } from '../../../tunnels/arklet/read.ts';
import { MIB, makeBase, makeHealth } from '../../support/builders.ts';

const facts = (more: Partial<NodeFacts> = {}): NodeFacts => ({
  base: makeBase('b1'),
  tunnel: 'mqtt_tunnel_provider',
  env: 'dev',
  kubeletVersion: 'v1.35.4-koupleless-0.1.0',
  health: makeHealth(),
  reachability: 'Reachable',
  hasAnswered: true,
  basePod: undefined,
  ...more,
});

const T1 = '2026-01-01T00:00:00Z';
const T2 = '2026-01-01T01:00:00Z';
const nodeOf = (made: NodeFacts = facts()): NodeObject => {
  const node = newNodeOf(made, T1);
  return { ...node, metadata: { ...node.metadata, uid: 'n1', resourceVersion: '5' } };
};

const plan = (more: Partial<NodePlanInput> = {}) =>
  planNode({
    node: projectNode(nodeOf()),
    facts: facts(),
    now: 100_000,
    nowText: T2,
    statusWrittenAt: 90_000,
    metaspaceTurnAt: () => 10_000,
    ...more,
  });

describe('a Node', () => {
  it('has the labels of the design document and those of the Go program', () => {
    expect(nodeOf().metadata.labels).toMatchObject({
      'base.koupleless.io/stack': 'java',
      'virtual-kubelet.koupleless.io/component': 'vnode',
      'virtual-kubelet.koupleless.io/env': 'dev',
      'vnode.koupleless.io/name': 'base',
      'vnode.koupleless.io/version': '1.0.0',
      'vnode.koupleless.io/tunnel': 'mqtt_tunnel_provider',
      'base.koupleless.io/name': 'base',
      'base.koupleless.io/version': '1.0.0',
      'base.koupleless.io/cluster-name': 'default',
      'base.koupleless.io/host-name': 'host-b1',
      'kubernetes.io/hostname': 'vnode.b1',
    });
  });

  it('has the labels of the operating system in pairs, and none of a processor that nobody knows', () => {
    const { labels = {} } = nodeOf().metadata;
    expect(labels).toMatchObject({ 'kubernetes.io/os': 'linux', 'beta.kubernetes.io/os': 'linux' });
    expect(Object.keys(labels).filter((key) => key.endsWith('/arch'))).toEqual([]);
    expect(nodeOf().status?.nodeInfo).toMatchObject({ architecture: '', operatingSystem: 'linux' });
  });

  it.each([
    [1, 0],
    [100, 0],
    [101, 15],
    [500, 15],
    [501, 30],
    [1_001, 60],
    [2_000, 60],
    [2_001, 300],
  ])('as number %d has a TTL of %d s, as kube-controller-manager would write it', (count, seconds) => {
    expect(ttlSecondsOf(count, 0)).toBe(seconds);
    expect(newNodeOf(facts(), T1, seconds).metadata.annotations).toHaveProperty(
      ['node.alpha.kubernetes.io/ttl'],
      String(seconds),
    );
  });

  it('keeps ordinary Pods and those of other envs off', () => {
    expect(nodeOf().spec).toEqual({
      providerID: 'koupleless://dev/b1',
      taints: [
        { key: 'schedule.koupleless.io/virtual-node', value: 'True', effect: 'NoExecute' },
        { key: 'schedule.koupleless.io/node-env', value: 'dev', effect: 'NoExecute' },
      ],
    });
  });

  it('has addresses, nodeInfo, capacity and all conditions from its first write on', () => {
    const { status } = nodeOf();
    expect(status?.addresses).toEqual([
      { type: 'InternalIP', address: '198.51.100.1' },
      { type: 'Hostname', address: 'vnode.b1' },
    ]);
    expect(nodeOf().metadata.labels?.['base.koupleless.io/host-name']).toBe('host-b1');
    expect(status?.nodeInfo?.kubeletVersion).toBe('v1.35.4-koupleless-0.1.0');
    expect(status?.capacity).toEqual({ cpu: '64', pods: '65535', memory: '262144Ki' });
    expect(status?.conditions?.map(({ type, status: is }) => `${type} ${is}`)).toEqual([
      'Ready True',
      'MemoryPressure False',
      'DiskPressure False',
      'PIDPressure False',
      'NetworkUnavailable False',
      'BaseReachable True',
      'MetaspacePressure False',
    ]);
  });

  it('tells no memory of a base without a limit', () => {
    expect(nodeOf(facts({ health: makeHealth({ metaspaceMaxBytes: undefined }) })).status?.capacity).toEqual({
      cpu: '64',
      pods: '65535',
    });
  });

  it('has no memory left, rather than less than none, when the base says that it uses more than it may', () => {
    const over = makeHealth({ metaspaceMaxBytes: 10 * MIB, metaspaceCommittedBytes: 11 * MIB });
    expect(nodeMemoryOf(over)).toEqual({ capacity: 10_240, allocatable: 0 });
    const odd = makeHealth({ metaspaceMaxBytes: 2_047, metaspaceCommittedBytes: 1 });
    expect(nodeMemoryOf(odd)).toEqual({ capacity: 1, allocatable: 1 });
    expect(nodeMemoryOf(makeHealth({ metaspaceMaxBytes: 2_048, metaspaceCommittedBytes: undefined }))).toEqual({
      capacity: 2,
      allocatable: 2,
    });
  });

  it.each([
    ['1', 1],
    ['65535', 65_535],
    ['65536', 0],
    ['-1', 0],
    ['1238.5', 0],
    ['x', 0],
  ])('with the port annotation %s names the port %d', (text, port) => {
    expect(arkletPortOf({ 'platform.koupleless.io/arklet-port': text })).toBe(port);
  });

  it('names the port of a base over HTTP only', () => {
    expect(arkletPortOf({})).toBe(0);
    const shown = (port: number, hasAnswered: boolean) =>
      newNodeOf(facts({ base: makeBase('b1', { port }), hasAnswered }), T1).metadata.annotations?.[
        'platform.koupleless.io/arklet-port'
      ];
    expect(shown(0, true)).toBeUndefined();
    expect(shown(1, true)).toBe('1');
    expect(shown(1, false)).toBeUndefined();
  });

  it('has valid labels whatever a base calls itself', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (name, hostName) => {
        const { labels = {} } = nodeOf(facts({ base: makeBase('b1', { name, hostName, version: name }) })).metadata;
        for (const value of Object.values(labels))
          expect(value).toMatch(/^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/);
      }),
    );
  });
});

describe('the plan for a Node', () => {
  it('writes nothing of what it has just written, whatever the base says', () => {
    const amount = fc.option(
      fc.integer({ min: 0, max: 4096 }).map((mib) => mib * MIB),
      { nil: undefined },
    );
    const health = fc.record({ max: amount, committed: amount, used: amount });
    fc.assert(
      fc.property(fc.string(), health, fc.constantFrom('Reachable', 'Unreachable', 'Suspended'), (name, jvm, reach) => {
        const made = facts({
          base: makeBase('b1', { name, hostName: name }),
          health: makeHealth({
            metaspaceMaxBytes: jvm.max,
            metaspaceCommittedBytes: jvm.committed,
            metaspaceUsedBytes: jvm.used,
          }),
          reachability: reach as NodeFacts['reachability'],
        });
        const again = plan({ node: projectNode(nodeOf(made)), facts: made });
        expect([again.metadata, again.status]).toEqual([undefined, undefined]);
      }),
    );
  });

  it('says Ready=False for a silent base, and moves only the times of conditions that changed', () => {
    const { status } = plan({ facts: facts({ reachability: 'Unreachable' }) });
    const { conditions = [] } = (status?.status ?? {}) as NonNullable<NodeObject['status']>;
    expect(conditions.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'BaseUnreachable',
      lastTransitionTime: T2,
    });
    expect(conditions.find(({ type }) => type === 'DiskPressure')?.lastTransitionTime).toBe(T1);
  });

  it('says that nobody is judged without touching Ready', () => {
    const { status } = plan({ facts: facts({ reachability: 'Suspended' }) });
    const { conditions = [] } = (status?.status ?? {}) as NonNullable<NodeObject['status']>;
    expect(conditions.find(({ type }) => type === 'BaseReachable')?.status).toBe('Unknown');
    expect(conditions.find(({ type }) => type === 'Ready')?.status).toBe('True');
  });

  it.each([
    ['False', 0.9, 'True'],
    ['False', 0.899, 'False'],
    ['True', 0.85, 'True'],
    ['True', 0.849, 'False'],
  ])('judges metaspace pressure that was %s at %f of the maximum as %s', (was, share, is) => {
    const max = 1_000 * MIB;
    const healthOf = (committed: number) => makeHealth({ metaspaceMaxBytes: max, metaspaceCommittedBytes: committed });
    const before = nodeOf(facts({ health: healthOf(was === 'True' ? max : 0) }));
    const made = facts({ health: healthOf(share * max) });
    const { status } = plan({ node: projectNode(before), facts: made });
    const shown = { ...before.status, ...(status?.status as NodeObject['status']) };
    const { conditions = [] } = shown;
    expect(conditions.find(({ type }) => type === 'MetaspacePressure')?.status).toBe(is);
  });

  it('judges no metaspace pressure of a base without a limit, and leaves it as it was until the health is known', () => {
    const unlimited = makeHealth({ metaspaceMaxBytes: undefined, metaspaceCommittedBytes: 4096 * MIB });
    expect(nodeOf(facts({ health: unlimited })).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'MetaspacePressure', status: 'False' }),
    );
    expect(nodeOf(facts({ health: undefined })).status?.conditions?.map(({ type }) => type)).not.toContain(
      'MetaspacePressure',
    );
    const pressed = nodeOf(facts({ health: makeHealth({ metaspaceMaxBytes: MIB, metaspaceCommittedBytes: MIB }) }));
    const { status } = plan({
      node: projectNode(pressed),
      facts: facts({ health: undefined }),
      statusWrittenAt: -300_000,
    });
    const { conditions = [] } = (status?.status ?? {}) as NonNullable<NodeObject['status']>;
    expect(conditions.find(({ type }) => type === 'MetaspacePressure')?.status).toBe('True');
  });

  it('takes the processor of an earlier version away in the write that corrects nodeInfo, and leaves one of others', () => {
    const node = nodeOf();
    const labels = { ...node.metadata.labels, 'kubernetes.io/arch': 'amd64', 'beta.kubernetes.io/arch': 'amd64' };
    const metadata = { ...node.metadata, labels };
    const nodeInfo = { ...node.status?.nodeInfo, architecture: 'amd64' };
    const before = projectNode({ ...node, metadata, status: { ...node.status, nodeInfo } } as NodeObject);
    const { status, metadata: ofMetadata } = plan({ node: before });
    expect(ofMetadata).toBeUndefined();
    expect(status).toMatchObject({
      metadata: { labels: { 'kubernetes.io/arch': null, 'beta.kubernetes.io/arch': null } },
      status: { nodeInfo: { architecture: '' } },
    });
    expect(plan({ node: projectNode({ ...node, metadata }) }).status).toBeUndefined();
  });

  it('shows the version of an API server that was upgraded', () => {
    const { status } = plan({ facts: facts({ kubeletVersion: 'v1.36.0-koupleless-0.1.0' }) });
    expect(status?.status).toMatchObject({ nodeInfo: { kubeletVersion: 'v1.36.0-koupleless-0.1.0' } });
  });

  it('reports each five minutes, and says when it will', () => {
    expect(plan({ statusWrittenAt: -199_999 }).status).toBeUndefined();
    expect(plan({ statusWrittenAt: -199_999 }).wakeAt).toBe(100_001);
    const due = plan({ statusWrittenAt: -200_000 });
    expect(due.status?.metadata).toMatchObject({ uid: 'n1' });
    expect(due.wakeAt).toBe(400_000);
  });

  it('leaves the memory alone while the base has not told its health', () => {
    const { status } = plan({ facts: facts({ health: undefined }), statusWrittenAt: -300_000 });
    expect(status?.status).not.toHaveProperty('capacity');
    expect(status?.status).not.toHaveProperty('allocatable');
  });

  it('takes the memory away when the base has no limit any more', () => {
    const { status } = plan({ facts: facts({ health: makeHealth({ metaspaceMaxBytes: undefined }) }) });
    expect(status?.status).toMatchObject({ capacity: { memory: null }, allocatable: { memory: null } });
  });

  it.each([
    ['1 MiB less one KiB', 256, MIB - 1024, false],
    ['1 MiB', 256, MIB, true],
    ['2 % of a small capacity', 16, Math.ceil(0.02 * 16 * MIB), true],
    ['less than 2 % of a small capacity', 16, 0.019 * 16 * MIB, false],
  ])('writes memory that moved by %s: %#', (_, maxMib, movedBytes, isWritten) => {
    const healthOf = (committed: number) =>
      makeHealth({ metaspaceMaxBytes: maxMib * MIB, metaspaceCommittedBytes: committed, metaspaceUsedBytes: 0 });
    const before = facts({ health: healthOf(8 * MIB) });
    const after = facts({ health: healthOf(8 * MIB + movedBytes) });
    const { status, writesMetaspace } = plan({ node: projectNode(nodeOf(before)), facts: after });
    expect(writesMetaspace).toBe(isWritten);
    expect(status !== undefined).toBe(isWritten);
  });

  it('writes what is used when only that moved, and not what is not known', () => {
    const healthOf = (metaspaceUsedBytes: number | undefined) => facts({ health: makeHealth({ metaspaceUsedBytes }) });
    const node = projectNode(nodeOf(healthOf(10 * MIB)));
    expect(plan({ node, facts: healthOf(11 * MIB) }).writesMetaspace).toBe(true);
    expect(plan({ node, facts: healthOf(9 * MIB) }).writesMetaspace).toBe(true);
    expect(plan({ node, facts: healthOf(11 * MIB - 1024) }).writesMetaspace).toBe(false);
    expect(plan({ node, facts: healthOf(undefined) }).writesMetaspace).toBe(false);
  });

  it('writes memory when it is its turn, and comes back for it', () => {
    const moved = facts({ health: makeHealth({ metaspaceCommittedBytes: 100 * MIB }) });
    const early = plan({ facts: moved, metaspaceTurnAt: () => 105_000 });
    expect([early.status, early.wakeAt]).toEqual([undefined, 105_000]);
    expect(plan({ facts: moved, metaspaceTurnAt: () => 100_000 }).writesMetaspace).toBe(true);
  });

  it('reports everything when it writes memory: the next periodic report comes five minutes later', () => {
    const moved = facts({ health: makeHealth({ metaspaceCommittedBytes: 100 * MIB }) });
    const { status, wakeAt } = plan({ facts: moved, now: 100_000, statusWrittenAt: -100_000 });
    const { conditions = [] } = (status?.status ?? {}) as { conditions?: { lastHeartbeatTime: string }[] };
    expect(conditions.map(({ lastHeartbeatTime }) => lastHeartbeatTime)).toEqual(Array(7).fill(T2));
    expect(wakeAt).toBe(400_000);
  });

  it.each([
    [undefined, false],
    [makeHealth(), true],
    [makeHealth({ metaspaceMaxBytes: undefined }), true],
    [makeHealth({ metaspaceMaxBytes: undefined, metaspaceUsedBytes: undefined }), false],
  ])('shows metaspace once it was written: %#', (health, shows) => {
    expect(showsMetaspace(projectNode(nodeOf(facts({ health }))))).toBe(shows);
  });

  it('knows the API server’s way to write an amount', () => {
    const node = nodeOf();
    const status = { ...node.status, capacity: { pods: '65535', memory: '256Mi' }, allocatable: { memory: '192Mi' } };
    expect(plan({ node: projectNode({ ...node, status } as NodeObject) }).status).toBeUndefined();
  });

  it('puts back a missing taint and keeps those of others', () => {
    const node = nodeOf();
    const foreign = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
    const taints = [...(node.spec?.taints ?? []).slice(1), foreign];
    const changed: NodeObject = { ...node, spec: { ...node.spec, taints } };
    expect(plan({ node: projectNode(changed) }).metadata?.spec).toEqual({
      taints: [...(nodeOf().spec?.taints ?? []), foreign],
    });
  });
});

describe('the write that makes a new Node usable', () => {
  const withTaints = (more: readonly { key: string; effect: string }[], made = facts()) => {
    const node = nodeOf(made);
    return projectNode({
      ...node,
      spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), ...more] },
    } as NodeObject);
  };
  const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

  it('removes the taint of the API server from exactly that version of the Node', () => {
    expect(usablePatchOf(withTaints([NOT_READY]))).toEqual({
      metadata: { uid: 'n1', resourceVersion: '5' },
      spec: { taints: nodeOf().spec?.taints },
    });
  });

  it('is none without the taint, for one that evicts Pods, and for a Node that is not Ready', () => {
    expect(usablePatchOf(withTaints([]))).toBeUndefined();
    expect(usablePatchOf(withTaints([{ ...NOT_READY, effect: 'NoExecute' }]))).toBeUndefined();
    expect(usablePatchOf(withTaints([NOT_READY], facts({ reachability: 'Unreachable' })))).toBeUndefined();
  });
});

describe('the memory of a Node', () => {
  it.each([
    ['256Mi', '192Mi'],
    [String(256 * MIB), String(192 * MIB)],
  ])('is not written again where the API server shows it as %s', (capacity, allocatable) => {
    const node = nodeOf();
    const shown: NodeObject = {
      ...node,
      status: {
        ...node.status,
        capacity: { ...node.status?.capacity, memory: capacity },
        allocatable: { ...node.status?.allocatable, memory: allocatable },
      },
    };
    expect(plan({ node: projectNode(shown) }).status).toBeUndefined();
  });
});

describe('the addresses of a Node', () => {
  it('are replaced as a whole when there are fewer: the list merges by type', () => {
    const node = projectNode(nodeOf());
    const status = plan({ node, facts: facts({ base: makeBase('b1', { ip: '0.0.0.0' }) }) }).status?.status;
    expect(status).toMatchObject({ addresses: [{ type: 'Hostname', address: 'vnode.b1' }, { $patch: 'replace' }] });
  });
});

describe('what a base says of itself', () => {
  const imageOf = (name: string, version = '1.0.0'): string | undefined =>
    nodeOf(facts({ base: makeBase('b1', { name, version }) })).status?.nodeInfo?.osImage;

  it.each([
    ['shop', '1.0.0', 'shop 1.0.0'],
    ['Läden_商店', '2.0+b1', 'Läden_商店 2.0+b1'],
    ['a\u001b[2J\u0007b\r\nc', '1', 'a 2J b c 1'],
    ['<img src=x onerror=alert(1)>', '1', 'img src=x onerror=alert(1) 1'],
    ['[here](http://x) `{{ .Env }}` $HOME &lt;', '1', 'here (http://x) .Env HOME lt 1'],
    ['a\u202eb\u200bc\ufeffd\ud800', '1', 'a b c d 1'],
  ])('is shown as plain text: %j', (name, version, shown) => {
    expect(imageOf(name, version)).toBe(shown);
  });

  it('is short', () => {
    expect(imageOf('n'.repeat(253), 'v'.repeat(128))).toHaveLength(128);
  });
});

describe('a name with half a character', () => {
  it('is not written again, though the API server stores another character in its place', () => {
    const json = JSON.stringify({
      data: { baseMetadata: { identity: 'b1', name: '\ud800' }, localIP: '198.51.100.1' },
    });
    const source = { tunnel: 'mqtt_tunnel_provider', identity: 'b1' } as const;
    const parsed = parse(source, Buffer.from(json), published(readHeart));
    if (parsed.invalid) throw new Error('the heartbeat is refused');
    const made = facts({ base: baseInfoOf(parsed.message.data) });
    const node = nodeOf(made);
    const stored: NodeObject = {
      ...node,
      status: { ...node.status, nodeInfo: { ...node.status?.nodeInfo, osImage: '' } },
    };
    expect(plan({ node: projectNode(stored), facts: made }).status).toBeUndefined();
  });
});

describe('an address', () => {
  it.each([
    '198.51.100.1',
    '1.0.0.0',
    '10.0.0.1',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '223.255.255.255',
    '240.0.0.0',
    '2001:db8::1',
    '::2',
    'fe7f::1',
    'fec0::1',
    'feff::1',
  ])('%s may be used', (ip) => {
    expect(isRoutable(ip)).toBe(true);
  });

  it.each([
    '0.0.0.0',
    '0.255.255.255',
    '127.0.0.0',
    '127.255.255.255',
    '169.254.0.0',
    '169.254.255.255',
    '224.0.0.0',
    '239.255.255.255',
    '::',
    '::1',
    'fe80::1',
    'febf::1',
    'ff00::1',
    'ffff::1',
  ])('%s would break every Service that selects it', (ip) => {
    expect(isRoutable(ip)).toBe(false);
  });
});
