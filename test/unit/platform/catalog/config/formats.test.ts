import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson } from '../../../../../src/platform/catalog/config/format/json.ts';
import { type ConfigValue, Literal } from '../../../../../src/platform/catalog/config/format/value.ts';
import { type ConfigFormat, mergeContents, parseContent } from '../../../../../src/platform/catalog/config/formats.ts';
import { runsOf } from '../../../../support/property-runs.ts';

/** Content as plain values; scalars that are no strings as `!text`. */
function plain(value: ConfigValue): unknown {
  if (value instanceof Literal) return `!${value.text}`;
  if (value instanceof Map) return [...value].map(([key, item]) => [key, plain(item)]);
  return Array.isArray(value) ? { list: value.map(plain) } : value;
}

function read(format: ConfigFormat, text: string): unknown {
  const parsed = parseContent(format, text);
  return 'fault' in parsed ? parsed.fault : plain(parsed.value);
}

function merged(format: ConfigFormat, parent: string, child: string): string {
  const result = mergeContents(format, parent, child);
  return 'fault' in result ? `${result.of} ${result.fault.line}:${result.fault.column}` : result.content;
}

const fault = (line: number, column: number, message: string) => ({
  line,
  column,
  message: expect.stringContaining(message),
});

describe('YAML', () => {
  it.each([
    ['', []],
    ['# only a comment\n', []],
    [
      'a: 1\nb: {c: [x, 2.50, ~]}',
      [
        ['a', '!1'],
        ['b', [['c', { list: ['x', '!2.50', '!~'] }]]],
      ],
    ],
    [
      'on: no\noff: "no"',
      [
        ['on', '!no'],
        ['off', 'no'],
      ],
    ],
    [
      'day: 2026-11-28\ny: y',
      [
        ['day', '2026-11-28'],
        ['y', 'y'],
      ],
    ],
    ['a: |\n  x\n  y\n', [['a', 'x\ny\n']]],
    [
      'a:\nb: !!str 5',
      [
        ['a', '!null'],
        ['b', '5'],
      ],
    ],
    ['__proto__: {toString: x}', [['__proto__', [['toString', 'x']]]]],
    [
      '2: x\n1: y',
      [
        ['2', 'x'],
        ['1', 'y'],
      ],
    ],
    [
      '\ufeffa: 1\nb: 2',
      [
        ['a', '!1'],
        ['b', '!2'],
      ],
    ],
    [
      'd: &d {a: 1, b: 2}\ne: {b: 3, <<: *d}\nf: [*d]',
      [
        [
          'd',
          [
            ['a', '!1'],
            ['b', '!2'],
          ],
        ],
        [
          'e',
          [
            ['b', '!3'],
            ['a', '!1'],
          ],
        ],
        [
          'f',
          {
            list: [
              [
                ['a', '!1'],
                ['b', '!2'],
              ],
            ],
          },
        ],
      ],
    ],
  ])('reads %j', (text, expected) => expect(read('yaml', text)).toEqual(expected));

  it.each([
    ['a: 1\nb: 2\na: 3', 3, 1, '"a" stands here a second time'],
    ['a: 1\n"1": x\n1: y', 3, 1, '"1" stands here a second time'],
    ['a: 1\n---\nb: 2\n', 2, 1, 'second document'],
    ['a: [1, 2\nb: 3', 2, 1, ''],
    ['a:\n\t- x', 2, 1, 'Tabs'],
    ['a: !!binary aGk=', 1, 4, 'tag'],
    ['a: !ruby/object x', 1, 4, ''],
    ['a: *b', 1, 4, 'anchor b'],
    ['a: &a [*a]', 1, 8, 'anchor a'],
    ['[x]: 1', 1, 1, 'a key must be text'],
    ['<<: 5', 1, 1, '<< needs a map'],
  ])('refuses %j', (text, line, column, message) => {
    expect(read('yaml', text)).toEqual(fault(line, column, message));
  });

  it('counts what aliases stand for', () => {
    const levels = Array.from({ length: 8 }, (_, at) => `a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`)}]`);
    const text = ['a0: &a0 [x, x, x, x, x, x, x, x, x]', ...levels].join('\n');
    expect(read('yaml', text)).toMatchObject({ message: expect.stringContaining('10000') });
    const deep = Array.from({ length: 40 }, (_, at) => `b${at + 1}: &b${at + 1} [[*b${at}]]`);
    expect(read('yaml', ['b0: &b0 [x]', ...deep].join('\n'))).toMatchObject({ message: expect.stringContaining('64') });
  });
});

describe('JSON', () => {
  it.each([
    ['  ', []],
    [
      '{"b": 1.50, "a": [true, null, "x\\u0041\\n"], "1": {}}',
      [
        ['b', '!1.50'],
        ['a', { list: ['!true', '!null', 'xA\n'] }],
        ['1', []],
      ],
    ],
    [
      '{"n": 12345678901234567890, "__proto__": 1}',
      [
        ['n', '!12345678901234567890'],
        ['__proto__', '!1'],
      ],
    ],
  ])('reads %j', (text, expected) => expect(read('json', text)).toEqual(expected));

  it.each([
    ['{"a": 1,\n "a": 2}', 2, 2, 'second time'],
    ['{"a": 1,}', 1, 9, 'found "}" instead of a key in double quotes'],
    ['{"a" 1}', 1, 6, 'found "1" instead of ":"'],
    ['{\n"a": nul}', 2, 6, 'found "n" instead of a value'],
    ['[1 2]', 1, 4, 'instead of "," or "]"'],
    ['{"a": "x\n"}', 1, 7, 'the string that starts here'],
    ['{"a": 1', 1, 8, 'the end of the file'],
    ['{} // no', 1, 4, 'nothing more'],
    ['{"a": 01}', 1, 8, 'found "1"'],
  ])('refuses %j', (text, line, column, message) => {
    expect(read('json', text)).toEqual(fault(line, column, message));
  });

  it('accepts what JSON.parse accepts, and nothing else', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"\\u12"',
      '1',
      '-',
      '.5',
      'true',
      ' ',
      'e3',
      '"',
    );
    const texts = fc.oneof(
      fc.array(pieces, { maxLength: 9 }).map((all) => all.join('')),
      fc.json({ maxDepth: 5 }),
      fc.jsonValue().chain((value) => {
        const text = JSON.stringify(value, null, 1);
        return fc.nat(text.length).map((at) => `${text.slice(0, at)}${text.slice(at + 1)}`);
      }),
    );
    const isRead = (read: () => unknown): boolean => {
      try {
        read();
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(texts, (text) => {
        // A key that stands twice is the one difference.
        const isAccepted = isRead(() => parseJson(text)) || String(faultOf(text)).includes('second time');
        expect(isAccepted).toBe(isRead(() => JSON.parse(text)));
      }),
      { numRuns: runsOf(500), endOnFailure: true },
    );
  });
});

function faultOf(text: string): string | undefined {
  const parsed = parseContent('json', text);
  return 'fault' in parsed ? parsed.fault.message : undefined;
}

describe('properties', () => {
  it.each([
    [
      '# comment \\\n! comment\n\n  a = b  \nc:d\ne f g\nh\n',
      [
        ['a', 'b  '],
        ['c', 'd'],
        ['e', 'f g'],
        ['h', ''],
      ],
    ],
    ['fruits  apple, banana, \\\n   pear, \\\r\n\tmango', [['fruits', 'apple, banana, pear, mango']]],
    ['a\\ b\\:\\=c = \\ d\\t\\u00e9\\q\\\\', [['a b:=c', ' d\té'.concat('q\\')]]],
    ['url=http://x?a=b#c', [['url', 'http://x?a=b#c']]],
    [
      'a = \\\n  \nb=1',
      [
        ['a', ''],
        ['b', '1'],
      ],
    ],
    ['a \\\n  = 1', [['a', '= 1']]],
    ['=x', [['', 'x']]],
    ['a==b', [['a', '=b']]],
    ['a=x\\', [['a', 'x']]],
    [
      'a\r=1',
      [
        ['a', ''],
        ['', '1'],
      ],
    ],
    ['größe=ü', [['größe', 'ü']]],
  ])('reads %j', (text, expected) => expect(read('properties', text)).toEqual(expected));

  it.each([
    ['a=1\n  b=\\u12x4', 2, 5, 'four hexadecimal digits'],
    ['a=1\n a : 2', 2, 2, 'second time'],
  ])('refuses %j', (text, line, column, message) => {
    expect(read('properties', text)).toEqual(fault(line, column, message));
  });
});

describe('ini', () => {
  it('reads sections and keys', () => {
    const text = 'top = 1\r\n; comment\n# comment\n[ a.b ]\nx = y = z ; no comment\nempty =\n\n[c]\n[a.b]\nlast=1';
    expect(read('ini', text)).toEqual([
      ['top', '1'],
      [
        'a.b',
        [
          ['x', 'y = z ; no comment'],
          ['empty', ''],
          ['last', '1'],
        ],
      ],
      ['c', []],
    ]);
  });

  it.each([
    ['[a]\n  word', 2, 3, 'key = value'],
    ['[a', 1, 1, 'a name in brackets'],
    ['[]', 1, 1, 'a name in brackets'],
    ['[a] x', 1, 1, 'a name in brackets'],
    ['= x', 1, 1, 'in front of "="'],
    ['[a]\nx=1\n[b]\nx=1\n[a]\nx=2', 6, 1, 'second time'],
    ['a = 1\n[a]', 2, 1, 'second time'],
  ])('refuses %j', (text, line, column, message) => {
    expect(read('ini', text)).toEqual(fault(line, column, message));
  });
});

describe('XML', () => {
  it.each(['', '<?xml version="1.0"?>\n<a b="c">&amp;<d/><![CDATA[<]]></a>\n', '\ufeff<a/>'])('accepts %j', (text) => {
    expect(parseContent('xml', text)).not.toHaveProperty('fault');
  });

  it.each([
    ['<a>\n<b></a>', 2, 'unexpected close tag'],
    ['<a>', 1, 'unclosed tag'],
    ['<a/>\n<b/>', 2, ''],
    ['<a>&x;</a>', 1, 'undefined entity'],
    ['<!DOCTYPE a [<!ENTITY x "y">]>\n<a>&x;</a>', 1, 'document type'],
    ['<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 1, 'document type'],
    ['<a b="1" b="2"/>', 1, 'duplicate attribute'],
    ['<x:a/>', 1, 'unbound namespace prefix'],
  ])('refuses %j', (text, line, message) => {
    expect(read('xml', text)).toMatchObject({ line, message: expect.stringContaining(message) });
  });
});

describe('limits', () => {
  it.each([
    ['yaml', '['],
    ['yaml', '{a: '],
    ['yaml', '- '],
    ['yaml', '? '],
    ['json', '['],
    ['json', '{"a":'],
    ['xml', '<a>'],
  ] as const)('%s: levels of %j', (format, level) => {
    const text = level.repeat(Math.floor(900_000 / level.length));
    expect(read(format, text)).toMatchObject({ message: expect.stringContaining('nested deeper than 64 levels') });
  });

  const many = (lineOf: (at: number) => string): string =>
    Array.from({ length: 10_001 }, (_, at) => lineOf(at)).join('\n');
  it.each([
    ['yaml', many((at) => `k${at}: 1`)],
    ['yaml', many(() => '- 1')],
    ['json', `{${many((at) => `"k${at}": 1${at === 10_000 ? '' : ','}`)}}`],
    ['properties', many((at) => `k${at}=1`)],
    ['ini', many((at) => `[s${at}]`)],
    ['xml', `<a>${many(() => '<b/>')}</a>`],
  ] as const)('%s: keys', (format, text) => {
    expect(read(format, text)).toMatchObject({ message: expect.stringContaining('more than 10000 keys') });
  });

  it('bytes', () => {
    expect(read('text', 'é'.repeat(450_000))).toHaveLength(450_000);
    expect(read('text', 'é'.repeat(450_001))).toMatchObject({ message: expect.stringContaining('900000 bytes') });
  });
});

describe('a file over that of its parent', () => {
  it.each([
    [
      'yaml',
      'a: {x: 1, y: [1, 2]}\nb: 010 # comment\nv: 1.10',
      'c: "no"\na: {y: [3], z: }',
      'a:\n  x: 1\n  "y":\n    - 3\n  z: null\nb: 010\nv: 1.10\nc: "no"\n',
    ],
    ['yaml', 'a: 1', '', 'a: 1\n'],
    ['yaml', '', '', '{}\n'],
    ['yaml', 'a: {b: 1}', 'a: x', 'a: x\n'],
    [
      'yaml',
      'a: [{b: 1, c: [[]]}]',
      '',
      'a:\n  -\n    b: 1\n    c:\n      -\n        []\n'.replace('-\n        []', '- []'),
    ],
    [
      'json',
      '{"a": {"x": 1.10}, "l": [1]}',
      '{"l": [], "a": {"y": null}}',
      '{\n  "a": {\n    "x": 1.10,\n    "y": null\n  },\n  "l": []\n}\n',
    ],
    ['properties', '# comment\na.b=1\nc=\\ ü', 'd\\ e=x\na.b : 2', 'a.b=2\nc=\\ \\u00fc\nd\\ e=x\n'],
    ['ini', '[s]\na=1\nb=2', 'top=1\n[s]\nb=3\n[t]\n', 'top = 1\n\n[s]\na = 1\nb = 3\n\n[t]\n'],
    ['xml', '<a/>', '<b/>', '<b/>'],
    ['text', 'a', 'b', 'b'],
    ['yaml', 'a: [', 'a: 1', 'parent 1:5'],
    ['json', '{}', '{"a"', 'child 1:5'],
  ] as const)('%s %j + %j', (format, parent, child, expected) => {
    expect(merged(format, parent, child)).toBe(expected);
  });

  const keys = fc.oneof(fc.constantFrom('a', 'b', 'no', '1', '__proto__', 'a b', '#', '[x]', 'ü'), fc.string());
  const scalars = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('no', '1:30', '~', '', ' x', 'a\nb', '\u2028', '- x', '0x1f', '2026-11-28', '*a', '<<', '\u0085'),
    fc.boolean(),
    fc.integer(),
    fc.constant(null),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.dictionary(keys, fc.oneof({ maxDepth: 2 }, scalars, tie('tree'), fc.array(scalars, { maxLength: 3 })), {
      maxKeys: 4,
    }),
  }));

  it('keeps each key of both, in YAML and JSON alike', () => {
    fc.assert(
      fc.property(tree, tree, (parent, child) => {
        const [a, b] = [JSON.stringify(parent), JSON.stringify(child)];
        const json = merged('json', a, b);
        // A JSON file is a YAML file, but YAML reads plain keys and scalars in another way.
        expect(read('yaml', merged('yaml', a, b))).toEqual(read('json', json));
        expect(JSON.parse(json)).toEqual(expectedOf(JSON.parse(a), JSON.parse(b)));
        expect(merged('json', json, '')).toBe(json);
      }),
      { numRuns: runsOf(60), endOnFailure: true },
    );
  });

  it('keeps each key of both, in properties', () => {
    const flat = fc.dictionary(keys, fc.string({ unit: 'binary-ascii' }));
    const text = (map: Record<string, string>): string =>
      Object.entries(map)
        .map((pair) => pair.map(codesOf).join('='))
        .join('\n');
    fc.assert(
      fc.property(flat, flat, (parent, child) => {
        const result = merged('properties', text(parent), text(child));
        expect(read('properties', result)).toEqual(entriesOf(parent, child));
        expect(merged('properties', result, '')).toBe(result);
      }),
      { numRuns: runsOf(60), endOnFailure: true },
    );
  });
});

/** Each unit as an escape sequence. */
function codesOf(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );
}

function entriesOf(parent: Record<string, string>, child: Record<string, string>): [string, string][] {
  return [...new Map([...Object.entries(parent), ...Object.entries(child)])];
}

function expectedOf(parent: unknown, child: unknown): unknown {
  if (!isObject(parent) || !isObject(child)) return child;
  const all = new Map(Object.entries(parent));
  for (const [key, value] of Object.entries(child))
    all.set(key, all.has(key) ? expectedOf(all.get(key), value) : value);
  return Object.fromEntries(all);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
