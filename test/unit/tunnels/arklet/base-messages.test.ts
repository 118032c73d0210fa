import { describe, expect, it } from 'vitest';
import { WireValue } from '../../../../tunnels/arklet/wire-value.ts';
import { mqttBaseMessages } from '../recordings.ts';
import { HEART, hear, hearData, refusalOf, SOURCE, withField } from './parsing.ts';

describe('a heartbeat', () => {
  it('becomes the base that it describes', () => {
    expect(hearData('heart', HEART)).toEqual({
      invalid: undefined,
      calls: [
        {
          on: 'heartbeat',
          envelope: { ...SOURCE, publishedAt: 5 },
          base: {
            identity: 'base-1',
            name: 'shop',
            version: '1.2',
            clusterName: 'blue',
            ip: '10.0.0.7',
            hostName: 'host-7',
            port: 1238,
          },
        },
      ],
    });
  });

  it('is read as recorded from a real base', () => {
    const recorded = mqttBaseMessages.find(({ topic }) => topic.endsWith('/heart'));
    expect(hear('heart', recorded?.payload ?? '', '192.0.2.2').calls).toEqual([
      {
        on: 'heartbeat',
        envelope: { ...SOURCE, identity: '192.0.2.2', publishedAt: 1795246950566 },
        base: {
          identity: '192.0.2.2',
          name: 'TO_BE_IMPLEMENTED',
          version: '1.0.0',
          clusterName: 'default',
          ip: '192.0.2.2',
          hostName: '192.0.2.2',
          port: 0,
        },
      },
    ]);
  });

  it.each([
    ['null as absent', { ...HEART, localHostName: null }, { hostName: '' }],
    ['digits as text', { ...HEART, port: '1239' }, { port: 1239 }],
    ['no port', { ...HEART, port: undefined }, { port: 0 }],
    ['an IPv6 address', { ...HEART, localIP: '2001:DB8:0::7' }, { ip: '2001:db8::7' }],
    ['an IPv4 address in an IPv6 address', { ...HEART, localIP: '::ffff:10.0.0.8' }, { ip: '10.0.0.8' }],
    ['fields nobody knows', { ...HEART, extra: { deep: [1] } }, { ip: '10.0.0.7' }],
    ['the longest name', withField(HEART, ['baseMetadata', 'name'], 'n'.repeat(253)), { name: 'n'.repeat(253) }],
    [
      'only an identity',
      { ...HEART, baseMetadata: { identity: 'base-1' } },
      { name: '', version: '', clusterName: '' },
    ],
  ])('is read with %s', (_what, data, expected) => {
    expect(hearData('heart', data).calls).toMatchObject([{ on: 'heartbeat', base: expected }]);
  });

  it.each([
    ['data.localIP is missing', withField(HEART, ['localIP'], undefined)],
    ['data.localIP is not an IP address', withField(HEART, ['localIP'], 'host.example')],
    ['data.localIP is not an IP address', withField(HEART, ['localIP'], 'fe80::1%eth0')],
    ['data.localIP is not a string', withField(HEART, ['localIP'], 7)],
    ['data.baseMetadata.identity is missing', withField(HEART, ['baseMetadata'], undefined)],
    ['data.baseMetadata is not an object', withField(HEART, ['baseMetadata'], ['base-1'])],
    ['data.baseMetadata.identity is empty', withField(HEART, ['baseMetadata', 'identity'], '')],
    [
      'data.baseMetadata.name has 254 characters, 253 are allowed',
      withField(HEART, ['baseMetadata', 'name'], 'n'.repeat(254)),
    ],
    [
      'data.baseMetadata.version has 129 characters, 128 are allowed',
      withField(HEART, ['baseMetadata', 'version'], '1'.repeat(129)),
    ],
    ['data.localHostName has 254 characters, 253 are allowed', withField(HEART, ['localHostName'], 'h'.repeat(254))],
    ['data.port is not a number', withField(HEART, ['port'], '12a')],
    ['data.port is not a number', withField(HEART, ['port'], '')],
    ['data.port is not a number', withField(HEART, ['port'], true)],
    ['data.port is not a port', withField(HEART, ['port'], 65_536)],
    ['data.port is not a port', withField(HEART, ['port'], -1)],
    ['data.port is not a port', withField(HEART, ['port'], 1.5)],
    ['data.localIP is missing', null],
    ['data is not an object', 'text'],
    ['data is not an object', []],
  ])('is refused: %s', (fault, data) => {
    expect(refusalOf('heart', data)).toBe(`Arklet.InvalidMessage: ${fault}`);
  });

  it('is refused when it names another base than its topic', () => {
    const other = withField(HEART, ['baseMetadata', 'identity'], 'base-2');
    expect(refusalOf('heart', other)).toBe('Arklet.IdentityMismatch: payload names "base-2"');
    expect(refusalOf('queryBaseline', { identity: 'base-2' })).toBe('Arklet.IdentityMismatch: payload names "base-2"');
  });

  it.each(['Base', 'base_1', '-base', 'a'.repeat(58), ''])('is refused from a base called %j', (identity) => {
    const payload = JSON.stringify({ data: withField(HEART, ['baseMetadata', 'identity'], identity) });
    const { calls, invalid } = hear('heart', payload, identity);
    expect(invalid).toMatchObject({ identity, code: 'Arklet.InvalidIdentity' });
    expect(calls).toEqual([]);
  });
});

describe('the time of a message', () => {
  it.each([
    ['{"data":[]}', undefined],
    ['{"publishTimestamp":null,"data":[]}', undefined],
    ['{"publishTimestamp":"17","data":[]}', 17],
    ['{"publishTimestamp":17.5,"data":[]}', 17.5],
  ])('in %s is %s', (payload, publishedAt) => {
    expect(hear('simpleBiz', payload).calls).toMatchObject([{ envelope: { publishedAt } }]);
  });

  it.each([
    ['"noon"', 'publishTimestamp is not a number'],
    ['1e300', 'publishTimestamp is not a time'],
    ['1e999', 'publishTimestamp is not a number'],
    ['{}', 'publishTimestamp is not a number'],
  ])('is refused as %s', (time, message) => {
    expect(hear('simpleBiz', `{"publishTimestamp":${time},"data":[]}`).invalid).toMatchObject({ message });
  });
});

describe('a payload', () => {
  it.each([
    ['', 'payload is not JSON'],
    ['not json', 'payload is not JSON'],
    ['{"data":', 'payload is not JSON'],
    ['[]', 'payload is not an object'],
    ['7', 'payload is not an object'],
    ['null', 'data.code is missing'],
  ])('%j is refused', (payload, message) => {
    expect(hear('health', payload).invalid).toEqual({ ...SOURCE, code: 'Arklet.InvalidMessage', message });
  });

  it('may have 1 MiB and not a byte more', () => {
    const empty = '{"data":[],"":""}';
    const full = empty.replace('""}', `"${'x'.repeat(1024 * 1024 - empty.length)}"}`);
    expect(hear('simpleBiz', full).calls).toHaveLength(1);
    expect(hear('simpleBiz', `${full} `).invalid).toMatchObject({
      message: 'payload has 1048577 bytes, 1048576 are allowed',
    });
  });

  it.each([
    ['heart', 'Known', 16],
    ['queryBaseline', 'Known', 16],
    ['heart', 'Unknown', 16],
    ['health', 'Known', 1_024],
    ['health', 'Asked', 64],
    ['bizOperation', 'Asked', 64],
  ] as const)('that is a %s of a base that is %s may have %i KiB', (type, sender, kib) => {
    const faultOf = (length: number) => hear(type, ' '.repeat(length), SOURCE.identity, sender).invalid?.message;
    expect(faultOf(kib * 1_024)).toBe('payload is not JSON');
    expect(faultOf(kib * 1_024 + 1)).toBe(`payload has ${kib * 1_024 + 1} bytes, ${kib * 1_024} are allowed`);
  });

  it('may be nested as deep as it can be long', () => {
    const depth = 500_000;
    const nested = '['.repeat(depth) + ']'.repeat(depth);
    expect(hear('simpleBiz', nested).invalid).toMatchObject({ message: expect.stringMatching(/^payload is not/) });
    expect(hear('simpleBiz', `{"data":[],"deep":${nested}}`)).toBeDefined();
  });

  it('cannot pass for an object with fields through its prototype', () => {
    expect(new WireValue(Object.create({ name: 'inherited' })).field('name').isAbsent).toBe(true);
    const data = JSON.stringify(HEART);
    expect(hear('heart', `{"__proto__":{"data":${data}}}`).invalid).toMatchObject({
      message: 'data.localIP is missing',
    });
    expect(hear('heart', `{"data":{"__proto__":${data}}}`).invalid).toMatchObject({
      message: 'data.localIP is missing',
    });
  });
});

describe('a health', () => {
  const jvm = (fields: object) => ({ code: 'SUCCESS', data: { healthData: { jvm: fields } } });

  it('is read as recorded from a real base, whose metaspace has no limit', () => {
    const recorded = mqttBaseMessages.find(({ topic }) => topic.endsWith('/health'));
    expect(hear('health', recorded?.payload ?? '', '192.0.2.2').calls).toMatchObject([
      {
        health: {
          metaspaceUsedBytes: 60063720,
          metaspaceCommittedBytes: 60686336,
          metaspaceMaxBytes: undefined,
          runTimeSeconds: 46.913,
          javaVersion: '17.0.15',
        },
      },
    ]);
  });

  it('takes digits as text', () => {
    const data = jvm({ 'java max metaspace': '1048576', 'java used metaspace': '-1', 'run time(s)': '1.5e3' });
    expect(hearData('health', data).calls).toMatchObject([
      { health: { metaspaceMaxBytes: 1048576, metaspaceUsedBytes: undefined, runTimeSeconds: 1500 } },
    ]);
  });

  it('knows nothing where the base could not say', () => {
    const nothing = {
      metaspaceUsedBytes: undefined,
      metaspaceCommittedBytes: undefined,
      metaspaceMaxBytes: undefined,
      runTimeSeconds: undefined,
      javaVersion: undefined,
    };
    for (const data of [{ code: 'FAILED', message: 'no' }, { code: 'SUCCESS', data: null }, jvm({})]) {
      expect(hearData('health', data).calls).toMatchObject([{ health: nothing }]);
    }
  });

  it('is refused where a figure is none', () => {
    expect(refusalOf('health', jvm({ 'java used metaspace': 'much' }))).toBe(
      'Arklet.InvalidMessage: data.data.healthData.jvm.java used metaspace is not a number',
    );
    expect(refusalOf('health', { data: {} })).toBe('Arklet.InvalidMessage: data.code is missing');
  });
});
