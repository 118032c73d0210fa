import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exportSettingsOf, reviewService } from '../../../../src/platform/export/exported-service.ts';
import { HTTP_PORT, type ServiceOptions, serviceOf, TCP_PORT } from './export-world.ts';

const PORTS = 'platform.koupleless.io/export-ports';

function settingsOf(options: ServiceOptions) {
  const settings = exportSettingsOf(serviceOf('shop', options));
  if (settings === undefined) throw new Error('not exported');
  return settings;
}

function withPorts(text: string, ports = [HTTP_PORT]) {
  return settingsOf({ annotations: { [PORTS]: text }, ports });
}

describe('what a Service says about its export', () => {
  it('has defaults', () => {
    expect(settingsOf({})).toMatchObject({
      groups: ['external'],
      balance: 'roundrobin',
      maxConnections: 50_000,
      isSsl: false,
      weightLabel: 'module.koupleless.io/version',
      weights: {},
      faults: [],
    });
  });

  it.each(['roundrobin', 'source', 'leastconn'])('may balance by %s', (balance) => {
    expect(settingsOf({ labels: { BCSGROUP: 'external', BCSBALANCE: balance } })).toMatchObject({
      balance,
      faults: [],
    });
  });

  it('joins the groups of label and annotation', () => {
    const annotations = { 'platform.koupleless.io/export-groups': 'exporter,external, b' };
    expect(settingsOf({ annotations }).groups).toEqual(['b', 'exporter', 'external']);
  });

  it('takes the protocol from the annotation, from appProtocol, from the protocol', () => {
    const protocolOf = (port: object, described?: string) => {
      const description = { domainName: 'a.example.com', ...(described && { protocol: described }) };
      return withPorts(JSON.stringify({ p: description }), [{ name: 'p', port: 80, ...port }]).ports[0]?.protocol;
    };
    expect(protocolOf({})).toBe('tcp');
    expect(protocolOf({ protocol: 'UDP' })).toBe('udp');
    expect(protocolOf({ appProtocol: 'http' })).toBe('http');
    expect(protocolOf({ appProtocol: 'https' })).toBe('https');
    expect(protocolOf({ appProtocol: 'kubernetes.io/h2c' })).toBe('http');
    expect(protocolOf({ appProtocol: 'redis' })).toBe('tcp');
    expect(protocolOf({ appProtocol: 'http' }, 'tcp')).toBe('tcp');
    expect(protocolOf({ protocol: 'SCTP' })).toBeUndefined();
  });

  it('calls the only port by its number where it has no name, and targets it where nothing else is said', () => {
    expect(settingsOf({ ports: [{ port: 9000 }] }).ports).toEqual([
      { name: '9000', protocol: 'tcp', servicePort: 9000, target: 9000, transport: 'TCP', host: '', path: '' },
    ]);
  });

  it('sorts its ports by name', () => {
    const ports = ['c', 'a', 'd', 'b'].map((name, index) => ({ name, port: index + 1 }));
    for (const given of [ports, ports.toReversed()])
      expect(settingsOf({ ports: given }).ports.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('takes what is just within its limits', () => {
    const host = `${'a'.repeat(60)}.`.repeat(4).slice(0, -2);
    const path = `/${'x'.repeat(1_023)}`;
    const described = withPorts(
      JSON.stringify({ http: { domainName: `${host}.${'b'.repeat(252 - host.length)}`, path } }),
    );
    expect([described.faults, described.ports[0]?.host.length, described.ports[0]?.path]).toEqual([[], 253, path]);
    const annotations = (count: string, groups: number) => ({
      'platform.koupleless.io/max-conn': count,
      'platform.koupleless.io/export-groups': Array.from({ length: groups }, (_, index) => `g${index}`).join(),
    });
    const ports = Array.from({ length: 64 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    const many = settingsOf({ labels: {}, annotations: annotations('10000000', 16), ports });
    expect(many).toMatchObject({ maxConnections: 10_000_000, faults: [] });
    expect([many.groups.length, many.ports.length]).toEqual([16, 64]);
    expect(settingsOf({ annotations: annotations('1', 1) })).toMatchObject({ maxConnections: 1, faults: [] });
    const weights = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`BCS-WEIGHT-v${index}`, '1000000']));
    const weighted = settingsOf({ labels: { BCSGROUP: 'external', ...weights } });
    expect([weighted.faults, Object.keys(weighted.weights).length]).toEqual([[], 64]);
  });

  it('leaves out what is beyond its limits, and says so', () => {
    const ports = Array.from({ length: 65 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    const many = settingsOf({ ports });
    expect([many.ports.length, many.faults]).toEqual([64, ['spec.ports: more than 64']]);
    const weights = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`BCS-WEIGHT-v${index + 100}`, '1']));
    const weighted = settingsOf({ labels: { BCSGROUP: 'external', ...weights } });
    expect(weighted.faults).toEqual(['metadata.labels: more than 64 weights']);
    expect(Object.keys(weighted.weights)).toEqual(Array.from({ length: 64 }, (_, index) => `v${index + 100}`));
    const groups = Array.from({ length: 17 }, (_, index) => `g${index + 10}`);
    const annotations = { 'platform.koupleless.io/export-groups': groups.join() };
    expect(settingsOf({ labels: {}, annotations }).groups).toEqual(groups.slice(0, 16));
  });

  it('may name a host with labels of 63 characters, of 253 in all', () => {
    for (const host of [`${'a'.repeat(63)}.${'b'.repeat(63)}`, `${'a.'.repeat(126)}b`])
      expect(withPorts(JSON.stringify({ http: { domainName: host } }))).toMatchObject({
        faults: [],
        ports: [{ host }],
      });
  });

  it('may name a wildcard host', () => {
    expect(withPorts('{"http":{"domainName":"*.example.com"}}')).toMatchObject({
      faults: [],
      ports: [{ host: '*.example.com', path: '/' }],
    });
  });
});

describe('faults of an exported Service', () => {
  const labels = (more: Record<string, string>) => ({ labels: { BCSGROUP: 'external', ...more } });
  const annotation = (name: string, value: string) => ({ annotations: { [`platform.koupleless.io/${name}`]: value } });

  it.each([
    [labels({ 'BCS-WEIGHT-2.0.0': 'x' }), 'metadata.labels[BCS-WEIGHT-2.0.0]: "x" is not an integer from 0 to 1000000'],
    [labels({ 'BCS-WEIGHT-2.0.0': '' }), 'metadata.labels[BCS-WEIGHT-2.0.0]: "" is not an integer from 0 to 1000000'],
    [
      labels({ 'BCS-WEIGHT-2.0.0': '1000001' }),
      'metadata.labels[BCS-WEIGHT-2.0.0]: "1000001" is not an integer from 0',
    ],
    [
      labels({ BCSBALANCE: 'random' }),
      'metadata.labels[BCSBALANCE]: "random" is not one of roundrobin, source, leastconn',
    ],
    [{ labels: { BCSGROUP: '' } }, 'metadata.labels[BCSGROUP]: must name a group'],
    [
      annotation('export-groups', 'a b'),
      'metadata.annotations[platform.koupleless.io/export-groups]: "a b" is not a group',
    ],
    [annotation('export-groups', 'a'.repeat(64)), 'is not a group'],
    [annotation('export-groups', Array.from({ length: 17 }, (_, index) => `g${index}`).join()), 'more than 16 groups'],
    [
      annotation('max-conn', '0'),
      'metadata.annotations[platform.koupleless.io/max-conn]: "0" is not an integer from 1',
    ],
    [annotation('max-conn', '10000001'), 'is not an integer from 1'],
    [annotation('max-conn', 'many'), 'metadata.annotations[platform.koupleless.io/max-conn]: "many" is not an integer'],
    [annotation('max-conn', '1.5'), 'is not an integer from 1'],
    [annotation('ssl', 'yes'), 'metadata.annotations[platform.koupleless.io/ssl]: "yes" is neither true nor false'],
    [
      annotation('weight-label', 'a/b/c'),
      'metadata.annotations[platform.koupleless.io/weight-label]: "a/b/c" is not a label name',
    ],
  ])('are named: %o', (options, fault) => {
    const { faults } = settingsOf(options);
    expect(faults).toEqual([expect.stringContaining(fault)]);
  });

  it.each([
    ['{', 'is not JSON'],
    ['[]', 'is not an object with the names of ports'],
    ['{"http":1}', '.http: is not an object with domainName, path, protocol'],
    ['{"http":{"domainName":"a.b"},"htp":{}}', '.htp: the Service has no port of this name, only http'],
    ['{"http":{"domainName":"a.b","host":"c"}}', '.http.host: is not one of domainName, path, protocol'],
    ['{"http":{"domainName":"a.b","protocol":"quic"}}', '.http.protocol: "quic" is not one of http, https, tcp, udp'],
    ['{"http":{"domainName":"a.b","protocol":7}}', '.http.protocol: 7 is not one of http, https, tcp, udp'],
    ['{"http":{"domainName":"a.b","protocol":null}}', '.http.protocol: null is not one of http, https, tcp, udp'],
    ['{"http":{}}', '.http.domainName: a port of http needs a host name, such as shop.example.com'],
    ['{"http":{"domainName":"A.b"}}', '.http.domainName: "A.b" is not a host name'],
    [
      '{"http":{"domainName":"a.b\\n  server evil 1.2.3.4"}}',
      '.http.domainName: "a.b\\n  server evil 1.2.3.4" is not a host name',
    ],
    ['{"http":{"domainName":"a.b","path":"x"}}', '.http.path: "x" must begin with "/"'],
    ['{"http":{"domainName":"a.b","path":"/x y"}}', '.http.path: "/x y" must begin with "/"'],
    ['{"http":{"domainName":"a.b","path":"/x;}"}}', '.http.path'],
    ['{"http":{"domainName":"a.b","path":7}}', '.http.path: 7 must begin'],
    [`{"http":{"domainName":"a.b","path":"/${'x'.repeat(1_024)}"}}`, '.http.path'],
    [`{"http":{"domainName":"${'a.'.repeat(126)}bb"}}`, 'is not a host name'],
    [`{"http":{"domainName":"${'a'.repeat(64)}.example.com"}}`, 'is not a host name'],
    [`{"http":{"domainName":"shop.${'a'.repeat(64)}"}}`, 'is not a host name'],
    ['null', 'is not an object with the names of ports'],
    ['{"http":{"domainName":"a.b","path":{}}}', '.http.path: an object must begin'],
    ['{"http":null}', '.http: is not an object with domainName, path, protocol'],
  ])('are named in %s', (text, fault) => {
    const { faults } = withPorts(text);
    expect(faults[0]).toContain(`metadata.annotations[${PORTS}]`);
    expect(faults[0]).toContain(fault);
  });

  it.each([
    ['{"http":{"protocol":"tcp","domainName":"a.example.com"}}', 'http.domainName: a port of tcp has none'],
    ['{"http":{"protocol":"tcp","path":"/x"}}', 'http.path: a port of tcp has none'],
    ...[
      '//',
      '/a//b',
      '/a/../b',
      '/..',
      '/./a',
      '/a%2fb',
      '/a%2E',
      '/%252e%252e/a',
      '/a%',
      '/a%zz',
      '/%00',
      '/%5Cx',
    ].map((path) => [JSON.stringify({ http: { domainName: 'a.example.com', path } }), 'http.path: ']),
  ])('name what a balancer reads in another way: %s', (described, fault) => {
    const { faults } = withPorts(described ?? '');
    expect(faults).toEqual([
      expect.stringContaining(`metadata.annotations[platform.koupleless.io/export-ports].${fault}`),
    ]);
  });

  it.each([
    ['udp', 'http', 'UDP'],
    ['udp', 'tcp', 'UDP'],
    ['tcp', 'udp', 'TCP'],
    ['sctp', 'tcp', 'SCTP'],
  ])(
    'name a port of %s that is described as %s, which would take a port of the other transport',
    (name, described, protocol) => {
      const description = JSON.stringify({ [name]: { protocol: described, domainName: 'a.example.com' } });
      const { faults, ports } = withPorts(description, [HTTP_PORT, { name, port: 80, protocol }]);
      expect(ports.map((port) => port.name)).not.toContain(name);
      expect(faults).toContainEqual(
        `metadata.annotations[platform.koupleless.io/export-ports].${name}.protocol: "${described}" does not run over ${protocol}`,
      );
    },
  );

  it('are none for an appProtocol of another transport: the port is exported as what it is', () => {
    const { faults, notes, ports } = settingsOf({
      ports: [{ name: 'h3', port: 443, protocol: 'UDP', appProtocol: 'https' }],
    });
    expect([faults, ports[0]?.protocol]).toEqual([[], 'udp']);
    expect(notes).toEqual(['spec.ports[h3].appProtocol: "https" does not run over UDP: the port is exported as udp']);
  });

  it('name a Service of type ExternalName, which has no backends', () => {
    const service = serviceOf('shop', { ports: [HTTP_PORT] });
    const external = { ...service, spec: { ...service.spec, type: 'ExternalName' } };
    expect(exportSettingsOf(external)).toMatchObject({
      ports: [],
      faults: ['spec.type: a Service of type ExternalName has no backends'],
    });
  });

  it('are none for an appProtocol of Kubernetes, or one that is not known', () => {
    const of = (appProtocol: string) => settingsOf({ ports: [{ ...TCP_PORT, appProtocol }] });
    expect(of('postgresql')).toMatchObject({ faults: [], ports: [{ protocol: 'tcp' }] });
    expect(of('postgresql').notes).toEqual([
      expect.stringContaining('spec.ports[tcp].appProtocol: "postgresql" is none'),
    ]);
    for (const [appProtocol, protocol] of [
      ['kubernetes.io/ws', 'http'],
      ['kubernetes.io/wss', 'https'],
    ] as const) {
      const found = withPorts('{"tcp":{"domainName":"a.example.com"}}', [{ ...TCP_PORT, appProtocol }]);
      expect(found).toMatchObject({ faults: [], notes: [], ports: [{ protocol }] });
    }
  });

  it('are named in a value that is nested more deeply than JSON can be written', () => {
    const nested = '['.repeat(50_000) + ']'.repeat(50_000);
    const { faults } = withPorts(`{"http":{"domainName":${nested}}}`);
    expect(faults).toEqual([expect.stringContaining('a list is not a host name')]);
  });

  it('of one port leave the description of the next one as it is', () => {
    const { ports, faults } = withPorts('{"bad":1,"http":{"domainName":"a.b"}}');
    expect([ports.map(({ host }) => host), faults]).toEqual([
      ['a.b'],
      [expect.stringContaining('.bad: is not an object')],
    ]);
  });

  it('leave out what balancers could not use, and nothing else', () => {
    const { ports, faults } = withPorts('{"http":{"path":"/"}}', [HTTP_PORT, TCP_PORT]);
    expect(ports.map(({ name }) => name)).toEqual(['tcp']);
    expect(faults).toHaveLength(1);
    expect(settingsOf(labels({ 'BCS-WEIGHT-1': '2', 'BCS-WEIGHT-2': 'x' })).weights).toEqual({ 1: 2 });
  });

  it('repeat 80 characters of a long text', () => {
    const shown = (length: number) => settingsOf(annotation('ssl', 'x'.repeat(length))).faults[0] ?? '';
    // Quotation marks and the mark of a cut are among them.
    expect(shown(78)).toContain(`: "${'x'.repeat(78)}" is neither`);
    expect(shown(79)).toContain(`: "${'x'.repeat(78)}… is neither`);
    expect(shown(5_000)).toBe(shown(79));
  });

  it('leave nothing to balancers that has a meaning in their configuration', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({
        unit: fc.constantFrom('a', '/', '.', '-', ' ', '\n', '#', '"', "'", '{', ';', '\\', '$', '*', '%', 'é'),
      }),
    );
    const annotations = fc.record({
      group: text,
      host: text,
      path: fc.tuple(fc.constantFrom('', '/'), text),
      balance: text,
    });
    fc.assert(
      fc.property(annotations, ({ group, host, path, balance }) => {
        const described = JSON.stringify({ http: { domainName: host, path: path.join('') } });
        const {
          groups,
          ports,
          balance: found,
        } = settingsOf({
          labels: { BCSGROUP: 'external', BCSBALANCE: balance },
          annotations: { 'platform.koupleless.io/export-groups': group, [PORTS]: described },
          ports: [HTTP_PORT],
        });
        expect(groups.filter((name) => !/^[\w.-]{1,63}$/.test(name))).toEqual([]);
        expect(['roundrobin', 'source', 'leastconn']).toContain(found);
        expect(ports.filter(({ host: of }) => !/^[a-z0-9.*-]+$/.test(of))).toEqual([]);
        expect(ports.filter(({ path: of }) => !/^\/[\w.~%+,=:@/-]*$/.test(of))).toEqual([]);
      }),
    );
  });

  it('are few and short, whatever is written', () => {
    const ports = Array.from({ length: 20_000 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    const described = Object.fromEntries(ports.map(({ name }) => [`no-${name}`, {}]));
    const { faults, ports: exported } = withPorts(JSON.stringify(described), ports);
    expect(exported).toHaveLength(64);
    expect(faults).toHaveLength(21);
    expect(faults.at(-1)).toBe('and 19981 more');
    expect(Math.max(...faults.map(({ length }) => length))).toBeLessThan(300);
  });

  it('show names of ports without what means anything in a log or a terminal', () => {
    const { faults } = withPorts(JSON.stringify({ http: { domainName: 'a.b' }, '\n\u001b[2Jx': { 'y\n': 1 } }));
    expect(faults.join()).toContain('."\\n\\u001b[2Jx"."y\\n": is not one of');
    const isControl = (text: string): boolean => [...text].some((character) => character < ' ');
    expect(faults.filter(isControl)).toEqual([]);
  });
});

describe('the review of a Service', () => {
  const broken = (name: string) => serviceOf('shop', { labels: { BCSGROUP: 'external', [`BCS-WEIGHT-${name}`]: 'x' } });
  const review = (object: ReturnType<typeof serviceOf>, oldObject?: ReturnType<typeof serviceOf>) =>
    reviewService({ operation: oldObject ? 'UPDATE' : 'CREATE', namespace: 't1', object, oldObject });

  it('refuses faults, and nothing of a Service that is not exported', () => {
    expect(review(broken('1'))).toEqual({ isAllowed: false, message: expect.stringContaining('BCS-WEIGHT-1') });
    expect(review(serviceOf('shop'))).toEqual({ isAllowed: true });
    expect(review(serviceOf('shop', { labels: { BCSBALANCE: 'x' } }))).toEqual({ isAllowed: true });
  });

  it('lets one with faults be changed that had them before', () => {
    expect(review(broken('1'), broken('1'))).toEqual({ isAllowed: true });
    expect(review(broken('2'), broken('1'))).toMatchObject({ isAllowed: false });
  });
});
