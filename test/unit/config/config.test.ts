import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../../src/config/config.ts';
import { VARIABLES } from '../../../src/config/variables.ts';

const LEAST = { ENABLE_MQTT_TUNNEL: 'true', MQTT_BROKER: 'broker.example' };
/** A replica that hears bases over HTTP. */
const MEMBER = {
  ENABLE_HTTP_TUNNEL: 'true',
  IS_CLUSTER: 'true',
  POD_IP: '192.0.2.1',
  MEMBER_TOKEN: 'members-only-1234',
};
const load = (env: Record<string, string | undefined> = {}) => loadConfig({ ...LEAST, ...env }, 'host-1');

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env, 'host-1');
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
}

describe('the configuration', () => {
  it('has the Go program’s defaults, but for the workers', () => {
    expect(load()).toMatchObject({
      kubeconfig: undefined,
      env: 'dev',
      controllers: ['vk'],
      isCluster: false,
      cluster: undefined,
      workers: 64,
      leaseRenewIntervalMs: 10_000,
      newBases: { maxVNodes: 5_000, newNodesPerMinute: 3_000, newBasesPerMinute: 60 },
      mqtt: { host: 'broker.example', port: 1883, clientPrefix: 'koupleless', username: undefined, caPath: undefined },
      http: undefined,
      installDeadlineMs: 300_000,
      uninstallDeadlineMs: 60_000,
      preStopSleepSeconds: 2,
      unknownModulePolicy: 'remove',
      namesBasePods: false,
      sharedNamespaces: [],
      healthProbePort: 8081,
      metricsPort: 9090,
      logLevel: 'info',
      pod: { name: undefined, namespace: 'default', ip: undefined },
      withoutEffect: [],
    });
  });

  it('reads each variable', () => {
    const config = load({
      KUBECONFIG: '/k',
      ENV: 'test',
      CLIENT_ID: 'c1',
      IS_CLUSTER: 'TRUE',
      MEMBER_TOKEN: 'members-only-1234',
      WORKLOAD_MAX_LEVEL: '10',
      REBALANCE: 'false',
      VNODE_WORKER_NUM: '3',
      LEASE_RENEW_INTERVAL_SECONDS: '20',
      MAX_VNODES: '4',
      MAX_NEW_NODES_PER_MINUTE: '5',
      NEW_BASES_PER_MINUTE: '6',
      MQTT_PORT: '8883',
      MQTT_USERNAME: 'u',
      MQTT_PASSWORD: 'secret',
      MQTT_CLIENT_PREFIX: 'p',
      MQTT_CA_PATH: '/ca',
      MQTT_CLIENT_CRT_PATH: '/crt',
      MQTT_CLIENT_KEY_PATH: '/key',
      ENABLE_HTTP_TUNNEL: 'true',
      HTTP_TUNNEL_LISTEN_PORT: '7000',
      HTTP_TUNNEL_TOKEN: 'bases-new-123456,bases-old-123456',
      HTTP_TUNNEL_BASE_NETWORKS: '10.0.0.0/8,fd00::/8',
      HTTP_TUNNEL_TRUSTED_PROXIES: '192.0.2.0/24',
      INSTALL_DEADLINE_SECONDS: '5',
      UNINSTALL_DEADLINE_SECONDS: '6',
      PRE_STOP_SLEEP_SECONDS: '7',
      UNKNOWN_MODULE_POLICY: 'keep',
      NAME_BASE_PODS: 'true',
      SHARED_NAMESPACES: 'team-a+team-a-test, team-b+team-b-test',
      HEALTH_PROBE_PORT: '0',
      METRICS_PORT: '1',
      LOG_LEVEL: 'debug',
      POD_NAME: 'pod',
      POD_NAMESPACE: 'ns',
      POD_IP: '192.0.2.1',
    });
    expect(config).toEqual({
      kubeconfig: '/k',
      env: 'test',
      controllers: ['vk'],
      clientId: 'c1',
      isCluster: true,
      cluster: {
        memberAddress: '192.0.2.1:7000',
        memberKeys: ['members-only-1234'],
        maxLevel: 10,
        rebalance: false,
      },
      workers: 3,
      leaseRenewIntervalMs: 20_000,
      newBases: { maxVNodes: 4, newNodesPerMinute: 5, newBasesPerMinute: 6 },
      mqtt: {
        host: 'broker.example',
        port: 8883,
        username: 'u',
        password: 'secret',
        clientPrefix: 'p',
        caPath: '/ca',
        clientCertPath: '/crt',
        clientKeyPath: '/key',
      },
      http: {
        port: 7000,
        tokens: ['bases-new-123456', 'bases-old-123456'],
        baseNetworks: [
          { address: '10.0.0.0', prefixLength: 8 },
          { address: 'fd00::', prefixLength: 8 },
        ],
        trustedProxies: [{ address: '192.0.2.0', prefixLength: 24 }],
      },
      installDeadlineMs: 5000,
      uninstallDeadlineMs: 6000,
      preStopSleepSeconds: 7,
      unknownModulePolicy: 'keep',
      namesBasePods: true,
      sharedNamespaces: [
        ['team-a', 'team-a-test'],
        ['team-b', 'team-b-test'],
      ],
      healthProbePort: 0,
      metricsPort: 1,
      logLevel: 'debug',
      pod: { name: 'pod', namespace: 'ns', ip: '192.0.2.1' },
      withoutEffect: [],
    });
  });

  it.each([
    ['WORKLOAD_MAX_LEVEL', 1, 100],
    ['VNODE_WORKER_NUM', 1, 256],
    ['LEASE_RENEW_INTERVAL_SECONDS', 10, 20],
    ['MAX_VNODES', 1, 100_000],
    ['MAX_NEW_NODES_PER_MINUTE', 1, 100_000],
    ['NEW_BASES_PER_MINUTE', 0, 100_000],
    ['MQTT_PORT', 1, 65_535],
    ['HTTP_TUNNEL_LISTEN_PORT', 0, 65_535],
    ['INSTALL_DEADLINE_SECONDS', 1, 86_400],
    ['UNINSTALL_DEADLINE_SECONDS', 1, 86_400],
    ['PRE_STOP_SLEEP_SECONDS', 0, 600],
    ['HEALTH_PROBE_PORT', 0, 65_535],
    ['METRICS_PORT', 0, 65_535],
  ])('has %s from %d to %d', (name, min, max) => {
    const isTaken = (value: number): boolean => faultsOf({ ...LEAST, [name]: String(value) }).length === 0;
    expect([min - 1, min, max, max + 1].map(isTaken)).toEqual([false, true, true, false]);
  });

  it('takes values at the limits of their rules', () => {
    const least = { ...LEAST, SHARED_NAMESPACES: `a+${'b'.repeat(63)}`, CLIENT_ID: 'x'.repeat(128) };
    expect(faultsOf({ ...least, HTTP_TUNNEL_BASE_NETWORKS: '10.0.0.1/32, fd00::1/128, 0.0.0.0/0' })).toEqual([]);
    expect(faultsOf({ ...LEAST, ENABLE_MQTT_TUNNEL: '1', ENABLE_HTTP_TUNNEL: '0' })).toEqual([]);
  });

  it('names the replica by CLIENT_ID, else by its Pod, else by its host, never at random', () => {
    expect(load({ CLIENT_ID: 'c', POD_NAME: 'p' }).clientId).toBe('c');
    expect(load({ POD_NAME: 'p' }).clientId).toBe('p');
    expect(load().clientId).toBe('host-1');
  });

  it.each(Object.keys(VARIABLES).filter((name) => !(name in LEAST)))('takes an empty %s as not set', (name) => {
    expect(load({ [name]: '' })).toEqual(load());
  });

  it('needs nothing but the switch for bases over HTTP, with or without a broker', () => {
    const http = { port: 7777, tokens: undefined, baseNetworks: undefined };
    expect(load({ ENABLE_HTTP_TUNNEL: 'true' })).toMatchObject({ mqtt: { port: 1883 }, http });
    expect(loadConfig({ ENABLE_HTTP_TUNNEL: 'true' }, 'host-1')).toMatchObject({ mqtt: undefined, http });
  });

  it('of a replica among others has where these post to it, with the HTTP tunnel only', () => {
    const shared = { maxLevel: 3, rebalance: true };
    expect(load({ IS_CLUSTER: 'true', POD_IP: '', MEMBER_TOKEN: 'members-only-1234' }).cluster).toEqual({
      ...shared,
      memberAddress: undefined,
      memberKeys: undefined,
    });
    const memberKeys = ['members-only-1234'];
    expect(load(MEMBER).cluster).toEqual({ ...shared, memberAddress: '192.0.2.1:7777', memberKeys });
    expect(load({ ...MEMBER, POD_IP: 'fd00::7' }).cluster?.memberAddress).toBe('[fd00::7]:7777');
    expect(load({ ...MEMBER, IS_CLUSTER: 'false' })).toMatchObject({ isCluster: false, cluster: undefined });
  });

  it('of a replica has two keys while one replaces the other', () => {
    const two = load({ ...MEMBER, MEMBER_TOKEN: 'members-new-1234,members-old-1234' });
    expect(two.cluster?.memberKeys).toEqual(['members-new-1234', 'members-old-1234']);
    expect(Object.isFrozen(two.cluster?.memberKeys)).toBe(true);
  });

  it('lets all namespaces share with *', () => {
    expect(load({ SHARED_NAMESPACES: '*' }).sharedNamespaces).toBe('all');
  });

  it('cannot be changed after it was read', () => {
    const config = load({ ...MEMBER });
    for (const part of [config, config.pod, config.mqtt, config.http, config.cluster])
      expect(Object.isFrozen(part)).toBe(true);
  });

  it('names variables of the Go program that do nothing here', () => {
    expect(
      load({ REPORT_HOOKS: 'x', NAMESPACE: '', KUBELET_PROXY_PORT: '1', WORKLOAD_MAX_LEVEL: '3' }).withoutEffect,
    ).toEqual(['REPORT_HOOKS', 'KUBELET_PROXY_PORT']);
  });
});

describe('a wrong configuration', () => {
  it.each([
    ['ENV', 'a b'],
    ['ENV', '-dev'],
    ['ENV', 'x'.repeat(64)],
    ['CLIENT_ID', '#'],
    ['CLIENT_ID', 'x'.repeat(129)],
    ['IS_CLUSTER', 'maybe'],
    ['WORKLOAD_MAX_LEVEL', '0'],
    ['WORKLOAD_MAX_LEVEL', '101'],
    ['REBALANCE', 'later'],
    ['POD_NAMESPACE', 'Koupleless'],
    ['POD_NAMESPACE', '-a'],
    ['POD_NAMESPACE', 'a.b'],
    ['POD_NAMESPACE', 'x'.repeat(64)],
    ['VNODE_WORKER_NUM', '0'],
    ['VNODE_WORKER_NUM', '257'],
    ['VNODE_WORKER_NUM', '1.5'],
    ['VNODE_WORKER_NUM', '-1'],
    ['ENABLE_MQTT_TUNNEL', 'on'],
    ['MQTT_BROKER', 'mqtt://broker'],
    ['MQTT_BROKER', 'broker:1883'],
    ['MQTT_BROKER', 'cafe:1883'],
    ['MQTT_PORT', '0'],
    ['MQTT_PORT', '65536'],
    ['ENABLE_HTTP_TUNNEL', 'on'],
    ['HTTP_TUNNEL_LISTEN_PORT', '65536'],
    ['HTTP_TUNNEL_BASE_NETWORKS', '10.0.0.1'],
    ['HTTP_TUNNEL_BASE_NETWORKS', '10.0.0.0/33'],
    ['HTTP_TUNNEL_BASE_NETWORKS', 'fd00::/129'],
    ['HTTP_TUNNEL_BASE_NETWORKS', '10.0.0.0/8,'],
    ['HTTP_TUNNEL_BASE_NETWORKS', '10.0.0.0/8;fd00::/8'],
    ['HTTP_TUNNEL_BASE_NETWORKS', 'bases.example/8'],
    ['HTTP_TUNNEL_BASE_NETWORKS', 'fe80::%eth0/10'],
    ['HTTP_TUNNEL_TRUSTED_PROXIES', 'proxy.example'],
    ['INSTALL_DEADLINE_SECONDS', '0'],
    ['UNINSTALL_DEADLINE_SECONDS', '86401'],
    ['SHARED_NAMESPACES', 'team-a'],
    ['SHARED_NAMESPACES', 'team-a+'],
    ['SHARED_NAMESPACES', 'team-a+Team_B'],
    ['SHARED_NAMESPACES', 'team-a+team-b,team-b+team-c'],
    ['SHARED_NAMESPACES', 'team-a+team-a'],
    ['SHARED_NAMESPACES', '*,team-a+team-b'],
    ['HEALTH_PROBE_PORT', '65536'],
    ['METRICS_PORT', 'x'],
    ['LOG_LEVEL', 'loud'],
  ])('with %s=%s is refused, with variable, value and rule', (name, value) => {
    const faults = faultsOf({ ...LEAST, [name]: value });
    const rule = VARIABLES[name as keyof typeof VARIABLES].rule.text;
    expect(faults).toEqual([`${name}=${JSON.stringify(value)}: must be ${rule}`]);
  });

  it.each(['broker', '192.0.2.1', '::1', '2001:db8::2', 'broker.example'])('is not one with the broker %s', (host) => {
    expect(load({ MQTT_BROKER: host }).mqtt?.host).toBe(host);
  });

  it('is told in all its faults at once', () => {
    const faults = faultsOf({
      ENV: '?',
      VNODE_WORKER_NUM: 'x',
      ENABLE_MQTT_TUNNEL: 'true',
      MQTT_CLIENT_KEY_PATH: '/key',
    });
    expect(faults).toHaveLength(4);
    for (const name of ['ENV', 'VNODE_WORKER_NUM', 'MQTT_BROKER', 'MQTT_CLIENT_CRT_PATH']) {
      expect(faults.some((fault) => fault.startsWith(name))).toBe(true);
    }
    expect(() => loadConfig({ ENV: '?', ENABLE_MQTT_TUNNEL: 'no' }, 'h')).toThrow(
      /2 fault\(s\):\n {2}ENV=.*\n {2}ENAB/,
    );
  });

  it('is one without any tunnel', () => {
    expect(faultsOf({ MQTT_BROKER: 'broker' })).toEqual([
      'ENABLE_MQTT_TUNNEL and ENABLE_HTTP_TUNNEL are false: no tunnel is enabled, so no base can be found',
    ]);
  });

  it.each<[string, Record<string, string>]>([
    ['MEMBER_TOKEN is not set: it is required', { MEMBER_TOKEN: '' }],
    ['POD_IP is not set: it is required', { POD_IP: '' }],
    ['POD_IP="controller-0": must be an IP address', { POD_IP: 'controller-0' }],
    ['POD_IP="fe80::1%eth0": must be an IP address', { POD_IP: 'fe80::1%eth0' }],
    ['HTTP_TUNNEL_LISTEN_PORT="0": must be from 1 to 65535', { HTTP_TUNNEL_LISTEN_PORT: '0' }],
  ])('is one of a replica that others cannot reach: %s', (fault, env) => {
    const withMembers = `${fault} with IS_CLUSTER=true and ENABLE_HTTP_TUNNEL=true`;
    expect(faultsOf({ ...LEAST, ...MEMBER, ...env })).toEqual([withMembers]);
    expect(faultsOf({ ...LEAST, ...MEMBER, ...env, IS_CLUSTER: '' })).toEqual([]);
    expect(faultsOf({ ...LEAST, ...MEMBER, ...env, ENABLE_HTTP_TUNNEL: '' })).toEqual([]);
  });

  it.each(['fifteen-letters', 'bases-new-123456,short', 'bases-new-123456,bases-old-123456,bases-odd-123456'])(
    'is one with the tokens %s of bases, which it does not show',
    (HTTP_TUNNEL_TOKEN) => {
      expect(faultsOf({ ...LEAST, HTTP_TUNNEL_TOKEN })).toEqual([
        `HTTP_TUNNEL_TOKEN=***: must be ${VARIABLES.HTTP_TUNNEL_TOKEN.rule.text}`,
      ]);
    },
  );

  it('is one in which bases know the token of the replicas', () => {
    const env = { ...MEMBER, HTTP_TUNNEL_TOKEN: MEMBER.MEMBER_TOKEN };
    expect(faultsOf(env)).toEqual([
      'MEMBER_TOKEN and HTTP_TUNNEL_TOKEN: must differ, or a base could speak as a replica',
    ]);
  });

  it('is one in which bases know the token of the replicas beside another one', () => {
    const env = { ...MEMBER, HTTP_TUNNEL_TOKEN: `bases-only-12345,${MEMBER.MEMBER_TOKEN}` };
    expect(faultsOf(env)).toEqual([
      'MEMBER_TOKEN and HTTP_TUNNEL_TOKEN: must differ, or a base could speak as a replica',
    ]);
  });

  it('is one in which bases know either key of the replicas', () => {
    for (const MEMBER_TOKEN of ['bases-and-members,members-old-1234', 'members-new-1234,bases-and-members']) {
      expect(faultsOf({ ...MEMBER, MEMBER_TOKEN, HTTP_TUNNEL_TOKEN: 'bases-and-members' })).toEqual([
        'MEMBER_TOKEN and HTTP_TUNNEL_TOKEN: must differ, or a base could speak as a replica',
      ]);
    }
  });

  it.each([
    'fifteen-letters',
    'x'.repeat(513),
    'members-new-1234,',
    ',members-new-1234',
    'members-new-1234,short',
    'members-new-1234, members-old-1234',
    'members-new-1234,members-new-1234',
    'members-new-1234,members-old-1234,members-oldest-1',
    'members-new-1234;members-old-1234',
  ])('is one of a replica with the keys %s, which it does not show', (MEMBER_TOKEN) => {
    expect(faultsOf({ ...MEMBER, MEMBER_TOKEN })).toEqual([
      'MEMBER_TOKEN=***: must be one key, or two different ones separated by a comma, each 16 to 512 of `A-Za-z0-9._~+/=-`',
    ]);
  });

  it('of a replica is told in all its faults at once, each once', () => {
    const env = { ...MEMBER, MEMBER_TOKEN: 'short', POD_IP: '', HTTP_TUNNEL_LISTEN_PORT: '0', ENV: '?' };
    expect(faultsOf(env).map((fault) => fault.split(/[ =]/)[0])).toEqual([
      'ENV',
      'MEMBER_TOKEN',
      'POD_IP',
      'HTTP_TUNNEL_LISTEN_PORT',
    ]);
  });

  it('is one whose host name cannot name the replica', () => {
    expect(faultsOf({ ...LEAST, POD_NAME: 'not a name' })).toEqual([
      expect.stringMatching(/^CLIENT_ID is not set, and "not a name" cannot stand in: must be at most 128/),
    ]);
  });

  it('never shows a password or token', () => {
    const env = {
      ...LEAST,
      MQTT_PASSWORD: 'hunter2',
      HTTP_TUNNEL_TOKEN: 'hunter 2',
      MEMBER_TOKEN: 'hunter2',
      ENV: '?',
    };
    expect(() => loadConfig(env, 'host-1')).toThrow(ConfigError);
    expect(faultsOf(env).join()).not.toMatch(/hunter ?2/);
    expect(faultsOf(env)).toContain(`HTTP_TUNNEL_TOKEN=***: must be ${VARIABLES.HTTP_TUNNEL_TOKEN.rule.text}`);
    expect(faultsOf(env)).toContain(`MEMBER_TOKEN=***: must be ${VARIABLES.MEMBER_TOKEN.rule.text}`);
  });
});

describe('the controllers of a process', () => {
  const KNOWN = ['vk', 'rollout', 'export'];
  const controllersOf = (text: string): readonly string[] =>
    loadConfig({ ...LEAST, CONTROLLERS: text }, 'host-1', KNOWN).controllers;

  it.each([
    ['vk', ['vk']],
    ['all', KNOWN],
    [' export , vk', ['vk', 'export']],
  ])('are those of %j, in the order in which they start', (text, names) => {
    expect(controllersOf(text)).toEqual(names);
  });

  it('are known by name', () => {
    expect(() => controllersOf('vk,exprot')).toThrow(
      'CONTROLLERS="vk,exprot": no such controller: exprot; there are: vk,rollout,export',
    );
  });

  it.each(['vk,vk', 'vk,', 'VK'])('are not %j', (text) => {
    expect(() => controllersOf(text)).toThrow(/CONTROLLERS=.*names of/);
  });

  it('need no tunnel and no membership without the Virtual Kubelet', () => {
    const config = loadConfig({ CONTROLLERS: 'rollout', IS_CLUSTER: 'true' }, 'host-1', KNOWN);
    expect(config).toMatchObject({ controllers: ['rollout'], mqtt: undefined, http: undefined, cluster: undefined });
  });
});
