import { describe, expect, it } from 'vitest';
import { argumentsOf, type ModuleConfigInForce } from '../../../../../src/platform/catalog/config/arguments.ts';
import { causeIn, causeOf } from '../../../../../src/platform/catalog/config/change-cause.ts';
import { flatten } from '../../../../../src/platform/catalog/config/flatten.ts';
import type { ConfigFormat } from '../../../../../src/platform/catalog/config/formats.ts';
import { secretKeysOf } from '../../../../../src/platform/catalog/config/secrets.ts';

/** A placeholder that Spring fills in. */
function placeholder(name: string): string {
  return `$\{${name}}`;
}

function flat(format: ConfigFormat, content: string): unknown {
  const result = flatten(format, content);
  return 'fault' in result ? result.fault : Object.fromEntries(result.properties);
}

describe('properties for Spring Boot', () => {
  it.each([
    [
      'yaml',
      'a: {b: [{c: 1}, [x]], "[d.e]": 2, f.g: y}',
      { 'a.b[0].c': 1, 'a.b[1][0]': 'x', 'a[d.e]': 2, 'a.f.g': 'y' },
    ],
    ['yaml', 'a: {}\nb: []\nc: ~\nd:\ne: ""', { a: '', b: '', c: '', d: '', e: '' }],
    ['yaml', 'm: {1: x, true: y}', { 'm[1]': 'x', 'm[true]': 'y' }],
    ['yaml', 'a: yes\nb: off\nc: "yes"\nd: 2026-11-28', { a: true, b: false, c: 'yes', d: '2026-11-28' }],
    [
      'yaml',
      'a: 010\nb: 0x1F\nc: 1_000\nd: 12:30\ne: 0b11\nf: -5\ng: +5',
      { a: 8, b: 31, c: 1000, d: 750, e: 3, f: -5, g: 5 },
    ],
    [
      'yaml',
      'a: 1.10\nb: 1.5\nc: 1e3\nd: .inf\ne: -.inf\nf: .nan',
      { a: '1.10', b: 1.5, c: '1e3', d: 'Infinity', e: '-Infinity', f: 'NaN' },
    ],
    ['yaml', 'a: 12345678901234567890', { a: '12345678901234567890' }],
    ['yaml', '', {}],
    [
      'json',
      `{"a": {"1": [true, null, 1.0]}, "b": "${placeholder('c')}"}`,
      { 'a.1[0]': true, 'a.1[1]': '', 'a.1[2]': '1.0', b: placeholder('c') },
    ],
    ['properties', 'a.b[0]=1\na.b[1] = x', { 'a.b[0]': '1', 'a.b[1]': 'x' }],
    ['yaml', '- a', 'the file must have keys at its top, no list and no single value'],
    ['json', '"a"', 'the file must have keys at its top, no list and no single value'],
    ['yaml', 'a: [', expect.stringMatching(/^line 1, column 5: /)],
    ['ini', 'a=1', 'a file of the format ini has no properties: use yaml, properties, json'],
  ] as const)('%s %j', (format, content, expected) => expect(flat(format, content)).toEqual(expected));
});

function configOf(content: string, more: Partial<ModuleConfigInForce> = {}): ModuleConfigInForce {
  return { name: 'shop', format: 'yaml', content, ...more };
}

function argsOf(...configs: ModuleConfigInForce[]): unknown {
  const result = argumentsOf('t1', configs);
  return 'fault' in result ? result.fault : result.args;
}

describe('arguments', () => {
  it('hold all properties, of which the later win', () => {
    const first = configOf('a: {b: 1, c: 2}\nl: [1, 2, 3]\ns: x, y\nm: {"[a.b]": 1}\nt: [1]');
    const later = configOf('a.b=9\nl[0]=4\ns[0]=z\nm[c.d]=2\nt=5', { format: 'properties' });
    expect(argsOf(first, later)).toEqual([
      '--spring.application.json={"a.c":2,"m[a.b]":1,"a.b":"9","l[0]":"4","s[0]":"z","m[c.d]":"2","t":"5"}',
    ]);
  });

  it('are none without properties', () => expect(argsOf(configOf('# none'))).toEqual([]));

  it('keep keys that every object has, and keys that look like numbers, in their order', () =>
    expect(argsOf(configOf('__proto__: 1\n2: b'))).toEqual(['--spring.application.json={"__proto__":1,"[2]":"b"}']));

  it('have 8 KiB at most, in bytes', () => {
    const room = 8192 - Buffer.byteLength('--spring.application.json={"a":""}');
    const isRefused = (text: string): boolean => typeof argsOf(configOf(`a: ${text}`)) === 'string';
    expect([isRefused('x'.repeat(room)), isRefused('x'.repeat(room + 1)), isRefused('é'.repeat(room / 2 + 1))]).toEqual(
      [false, true, true],
    );
    expect(argsOf(configOf(`a: ${'x'.repeat(9000)}`))).toBe(
      'configs: shop need 9034 bytes of arguments, at most 8192 are possible: use `as: Http`',
    );
  });

  it('are refused for what they cannot carry', () => {
    expect(argsOf(configOf('<a/>', { format: 'xml' }))).toBe(
      'configs: ModuleConfig shop: a file of the format xml has no properties: use yaml, properties, json',
    );
  });
});

describe('keys with secrets', () => {
  it.each([
    ['yaml', 'db: {password: x, user: y}\napi-key: z\naccessToken: t', ['db.password', 'api-key', 'accessToken']],
    ['yaml', `password: 12345\nsecret: [x, "${placeholder('A')}"]\ncredentials: {user: x}`, ['password', 'secret[0]']],
    ['yaml', `password: ${placeholder('DB')}\nsecret: ""\ntoken: ~\npwd: true`, []],
    ['yaml', 'secret-name: x\ntoken-url: y\npassword-encoder: z\naccess-key-id: i\nmonkey: m\nkey: k', []],
    [
      'properties',
      'spring.datasource.password=x\nrsa.private_key=y\npasswords.count=3',
      ['spring.datasource.password', 'rsa.private_key'],
    ],
    ['ini', '[db]\nPassword = x', ['db.Password']],
    ['text', 'password=x', []],
    ['yaml', 'a: [', []],
  ] as const)('%s %j', (format, content, expected) => expect(secretKeysOf(format, content)).toEqual(expected));

  it('are ten at most', () => {
    const content = Array.from({ length: 12 }, (_, at) => `k${at}.token=x`).join('\n');
    expect(secretKeysOf('properties', content)).toHaveLength(10);
  });
});

describe('who changed a content, and why', () => {
  const annotations = { 'platform.koupleless.io/changed-by': ' ann ', 'kubernetes.io/change-cause': 'more stock' };

  it('counts with the first content, and where it changed with the content', () => {
    const first = causeOf(undefined, annotations, 's1');
    expect(first).toEqual({ by: 'ann', reason: 'more stock' });
    const before = causeIn(annotations);
    expect(causeOf(before, annotations, 's2')).toEqual({});
    expect(causeOf(before, { ...annotations, 'kubernetes.io/change-cause': 'less' }, 's2')).toEqual({
      by: 'ann',
      reason: 'less',
    });
    expect(causeOf(before, {}, 's2')).toEqual({});
  });

  it('is shortened between characters', () => {
    const { by, reason } = causeIn({
      ...annotations,
      'platform.koupleless.io/changed-by': '😀'.repeat(120),
      'kubernetes.io/change-cause': '',
    });
    expect([by, reason]).toEqual(['😀'.repeat(100), undefined]);
  });
});

describe('arguments of a Module that reads its configuration over HTTP', () => {
  const overHttp = [
    { name: 'db', format: 'yaml', version: 'v1' },
    { name: 'ui', format: 'json', version: 'v2' },
  ] as const;
  const client = {
    'spring.config.import': `configserver:${placeholder('MODULE_CONFIG_URL')}/config/t1`,
    'spring.cloud.config.name': 'db,ui',
    'spring.cloud.config.profile': 'default',
    'spring.cloud.config.label': 'v1.v2',
    'spring.cloud.config.headers.Authorization': `Bearer ${placeholder('MODULE_CONFIG_TOKEN:')}`,
  };

  it('name the server and the versions, beside the configuration that comes as arguments', () => {
    const found = argumentsOf('t1', [configOf('a: 1')], overHttp);
    expect(found).toEqual({ args: [`--spring.application.json=${JSON.stringify({ a: 1, ...client })}`] });
  });

  it.each([
    ['spring.config.import: x', 'spring.config.import'],
    ['spring: {config: {import: [x, y]}}', 'spring.config.import[0]'],
    ['spring.cloud.config.label: x', 'spring.cloud.config.label'],
  ])('are refused beside %s', (content, key) =>
    expect(argumentsOf('t1', [configOf(content)], overHttp)).toEqual({
      fault: `configs: ${key} belongs to \`as: Http\`: remove it from the content`,
    }),
  );

  it('are refused for a format without properties', () =>
    expect(argumentsOf('t1', [], [{ name: 'logs', format: 'xml', version: 'v1' }])).toEqual({
      fault: 'configs: ModuleConfig logs: a file of the format xml has no properties: use yaml, properties, json',
    }));
});
