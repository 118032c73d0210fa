import fc from 'fast-check';
import { FUNCTION_NAMES } from '../../../../../src/platform/traits/template/template.ts';
import { type Case, corpus } from './support.ts';

/** Terms of the grammar, and parts of terms for the mutations. */
const FIELDS = [
  ...[
    '.',
    '$',
    '.AppName',
    '.Params',
    '.Params.NAME',
    '.Params.PORT',
    '.Params.RATIO',
    '.Params.NONE',
    '.Params.EMPTY',
  ],
  ...['.Params.LIST', '.Params.NUMS', '.Params.MIXED', '.Params.MAP', '.Params.MAP.a', '.Params.NOPE', '.Params.TEXT'],
  ...['.Params.UNI', '.Params.QUOTE', '.Params.KEYS', '.Params.NESTED.items', '.name', '.a', '.Params.ON', '.Replicas'],
];
const VARIABLES = ['$', '$x', '$y', '$i', '$v'];
/** Declares most of them. */
const DECLARED = ['', '{{ $x := .Params.NAME }}{{ $y := .Params.LIST }}{{ $i := 0 }}{{ $v := dict "a" 1 "name" "n" }}'];
const NUMBERS = [
  ...['0', '1', '2', '-1', '3', '10', '1.5', '0.0', '-0.5', '1e3', '1e6', '1e21', '0x1F', '0b11', '0o17', '017', '1_0'],
  ...["'a'", "'é'", '9223372036854775807', '-0x1e', '0x1p4', '.5', '5.', '2.0', '4', '5', '6', '7'],
];
const WRONG_NUMBERS = ['9223372036854775808', '1e400', '08', '1_', '0x', '1i'];
const STRINGS = [
  ...['""', '"a"', '"b"', '","', '"a,b,c"', '"%d"', '"%v %s"', '"%5.2f|%-5d|%05d"', '"%q"', '"é世😀"', '"x\\n y\\n"'],
  ...[
    '`raw`',
    '`a\nb`',
    '"\\xff"',
    '"\\u00e9"',
    '" pad "',
    '"aGk="',
    '"{\\"a\\":[1,2.5]}"',
    '"yes"',
    '"a: b"',
    '"\\\\"',
  ],
];
const WORDS = ['true', 'false', 'nil'];
const PIECES = [
  ...[
    '{{',
    '}}',
    '{{-',
    '-}}',
    '{{- ',
    ' -}}',
    '|',
    ':=',
    '=',
    '(',
    ')',
    ',',
    ' ',
    '\n',
    '.',
    '$',
    '"',
    '`',
    "'",
    '/*',
  ],
  ...[
    '*/',
    'if',
    'else',
    'end',
    'range',
    'with',
    'break',
    'continue',
    'define',
    'template',
    'block',
    'else if',
    '%',
    '\\',
  ],
  ...['-', '+', '0', '1', 'e', '_', 'é', '😀', '\t', ':', '!', '#'],
];

const pieces = fc.constantFrom(
  ...PIECES,
  ...FIELDS,
  ...VARIABLES,
  ...NUMBERS,
  ...WRONG_NUMBERS,
  ...STRINGS,
  ...WORDS,
  ...FUNCTION_NAMES,
);
const texts = fc.constantFrom('a', ' ', '\n', ' x ', ' \n\t', '{', '}', '}}', 'é', 'key: ', '- ', '');
const opens = fc.constantFrom('{{', '{{ ', '{{- ');
const closes = fc.constantFrom('}}', ' }}', ' -}}', '  \n -}}');
const names = fc.constantFrom('"t"', '"u"', '`t`', '"trait"', '"nope"');

/** Kinds of the parameters of functions: text, integer, map, list, anything; `*` for any number of the last one. */
const PARAMETERS: Readonly<Record<string, string>> = {
  ...{ and: 'a*', or: 'a*', not: 'a', eq: 'aa*', ne: 'aa', lt: 'ii', le: 'ss', gt: 'ii', ge: 'ss', len: 's' },
  ...{ index: 'li', slice: 'sii', print: 'a*', println: 'a*', printf: 'sa*', html: 'a*', js: 'a*', urlquery: 'a*' },
  ...{ b64enc: 's', b64dec: 's', quote: 'a*', default: 'aa', required: 'sa', toJson: 'a', toYaml: 'a', fromJson: 's' },
  ...{ indent: 'is', nindent: 'is', upper: 's', lower: 's', trim: 's', replace: 'sss', split: 'ss', join: 'sl' },
  ...{ list: 'a*', dict: 'sasa', hasKey: 'ms', sha256sum: 's', call: 'a' },
};
const FITTING: Readonly<Record<string, readonly string[]>> = {
  s: [...STRINGS, '.Params.NAME', '.Params.TEXT', '.AppName', '.Params.UNI', '$.Params.QUOTE', '$x', '(print .)'],
  i: ['0', '1', '2', '3', '(len "ab")', '$i', "'\\x01'"],
  m: ['.Params', '$.Params.MAP', '$v', '(dict "a" 1)'],
  l: ['.Params.LIST', '$.Params.NUMS', '$y', '(list 1 "a" nil)', '$.Params.MIXED'],
};

interface Grammar {
  term: string;
  call: string;
  pipeline: string;
  node: string;
  nodes: string;
}

function joined(...parts: readonly (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> {
  const arbitraries = parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part));
  return fc.tuple(...arbitraries).map((all) => all.join(''));
}

function wrapped(...parts: readonly (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> {
  return joined(opens, ...parts, closes);
}

const grammar = fc.letrec<Grammar>((tie: fc.LetrecTypedTie<Grammar>) => {
  const [term, call, pipeline, nodes] = [tie('term'), tie('call'), tie('pipeline'), tie('nodes')];
  const variable = fc.constantFrom(...VARIABLES);
  const assign = fc.constantFrom(' := ', ' = ', ':=');
  const end = wrapped('end');
  const otherwise = fc.oneof(
    { weight: 4, arbitrary: fc.constant('') },
    { weight: 3, arbitrary: joined(wrapped('else'), nodes) },
    { weight: 1, arbitrary: joined(wrapped('else if ', pipeline), nodes) },
    { weight: 1, arbitrary: joined(wrapped('else with ', pipeline), nodes) },
  );
  const keyword = fc.constantFrom('if ', 'with ', 'range ');
  const lists = fc.oneof(pipeline, fc.constantFrom(...(FITTING.l ?? []), ...(FITTING.m ?? []), '3'));
  const heads = fc.oneof(
    joined(keyword, pipeline),
    joined('range ', lists),
    joined(keyword, variable, assign, pipeline),
    joined('range ', variable, ', ', variable, assign, lists),
  );
  /** Arguments that fit, most of the time. */
  const argumentsOf = (kinds: string): fc.Arbitrary<string> => {
    const all = kinds.replace('*', kinds.charAt(kinds.length - 2));
    const each = [...all].map((kind) => {
      const fitting = FITTING[kind];
      if (fitting === undefined) return joined(' ', term);
      return joined(
        ' ',
        fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...fitting) }, { weight: 1, arbitrary: term }),
      );
    });
    return joined(...each);
  };
  const calls = FUNCTION_NAMES.map((name) => joined(name, argumentsOf(PARAMETERS[name] ?? '')));
  const stages = FUNCTION_NAMES.map((name) => joined(name, argumentsOf((PARAMETERS[name] ?? '').slice(0, -1))));
  return {
    term: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 6, arbitrary: fc.constantFrom(...FIELDS) },
      { weight: 6, arbitrary: fc.constantFrom(...STRINGS) },
      { weight: 6, arbitrary: fc.constantFrom(...NUMBERS) },
      { weight: 4, arbitrary: variable },
      { weight: 2, arbitrary: fc.constantFrom(...WORDS) },
      { weight: 1, arbitrary: joined(variable, fc.constantFrom('.a', '.name', '.NAME')) },
      { weight: 4, arbitrary: joined('(', pipeline, ')') },
      { weight: 1, arbitrary: joined('(', pipeline, ')', fc.constantFrom('.a', '.name')) },
    ),
    call: fc.oneof({ weight: 12, arbitrary: fc.oneof(...calls) }, { weight: 1, arbitrary: joined(term, ' ', term) }),
    pipeline: fc.oneof(
      { depthSize: 'small' },
      { weight: 4, arbitrary: term },
      { weight: 4, arbitrary: call },
      { weight: 2, arbitrary: joined(term, ' | ', fc.oneof(...stages)) },
      { weight: 1, arbitrary: joined(call, '|', fc.oneof(...stages), ' | ', fc.oneof(...stages)) },
    ),
    node: fc.oneof(
      { depthSize: 'small' },
      { weight: 4, arbitrary: texts },
      { weight: 8, arbitrary: wrapped(pipeline) },
      { weight: 2, arbitrary: wrapped(variable, assign, pipeline) },
      { weight: 6, arbitrary: joined(wrapped(heads), nodes, otherwise, end) },
      {
        weight: 1,
        arbitrary: joined(wrapped('range ', lists), nodes, wrapped(fc.constantFrom('break', 'continue')), nodes, end),
      },
      { weight: 1, arbitrary: fc.constantFrom('{{/* c */}}', '{{- /* c */ -}}') },
      { weight: 1, arbitrary: wrapped('template ', names, ' ', pipeline) },
      { weight: 1, arbitrary: joined(wrapped('define ', names), nodes, end) },
      { weight: 1, arbitrary: joined(wrapped('block ', names, ' ', pipeline), nodes, end) },
    ),
    nodes: fc.array(tie('node'), { maxLength: 3 }).map((parts) => parts.join('')),
  };
});

/** A change of a template at a place: what goes, and what comes. */
const mutations = fc.record({ place: fc.nat(), length: fc.nat({ max: 6 }), piece: fc.option(pieces, { nil: '' }) });

function mutated(template: string, changes: readonly { place: number; length: number; piece: string }[]): string {
  return changes.reduce((text, { place, length, piece }) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + piece + text.slice(at + length);
  }, template);
}

/** Templates by the grammar, a part of them with a few changes. */
export const templates: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom(...DECLARED),
    fc.array(grammar.node, { minLength: 1, maxLength: 3 }),
    fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(mutations, { minLength: 1, maxLength: 3 }) },
    ),
  )
  .map(([declared, nodes, changes]) => mutated(declared + nodes.join(''), changes))
  // Half of a surrogate pair is no text.
  .filter((template) => template.isWellFormed());

const CASES: readonly Case[] = corpus().flatMap(([, cases]) => cases.filter(({ refused }) => refused === undefined));

/** Cases of the corpus with a few changes: pieces of the grammar, or parts of another case. */
export const changedCases: fc.Arbitrary<Pick<Case, 'template' | 'data'>> = fc
  .tuple(
    fc.constantFrom(...CASES),
    fc.constantFrom(...CASES),
    fc.array(
      fc.record({ place: fc.nat(), length: fc.nat({ max: 12 }), piece: pieces, from: fc.nat(), isPart: fc.boolean() }),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([{ template, data }, other, changes]) => ({
    template: mutated(
      template,
      changes.map(({ piece, from, isPart, ...change }) => {
        const start = from % (other.template.length + 1);
        return { ...change, piece: isPart ? other.template.slice(start, start + (from % 23)) : piece };
      }),
    ),
    data,
  }))
  .filter(({ template }) => template.isWellFormed());

/** An action without any grammar. */
export const soups: fc.Arbitrary<string> = fc
  .array(pieces, { minLength: 1, maxLength: 8 })
  .map((parts) => `{{${parts.join('')}}}`);

const characters = fc.oneof(
  fc.constantFrom(...'abcABC019 _-.:#,\'"\n\t&<>{}[]*!%@`~+='),
  fc.constantFrom('é', 'ß', '世', '😀', '\0', '\x07', '\x1b', '\r', '\u00a0', '\ufeff', 'ǆ', 'İ', 'ā', 'Ā', '٣'),
);
const words = fc.constantFrom(
  'yes',
  'null',
  '1.5',
  '0x1f',
  '1e3',
  '2020-01-01',
  '---',
  '- a',
  'a: b',
  ' #',
  '',
  '<<',
  '12:30',
  '0b-1',
);
/** Strings that printing, quoting and YAML treat in their own ways. */
export const strings: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: characters, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: characters, minLength: 60, maxLength: 240 }) },
  { weight: 1, arbitrary: words },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
);
const numbers = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -100, max: 100_000_000 }),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .filter((number) => !Number.isInteger(number) || Math.abs(number) >= 2 ** 63),
  fc.integer({ min: -999_999, max: 999_999 }).map((number) => number / 1000),
);
/** Values of JSON. */
export const values: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 5 },
    strings,
    numbers,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(strings, tie('value'), { maxKeys: 4 }),
  ),
})).value;

const verbs = fc.constantFrom(...'vdsqtxXobcefgEGFTOzp%!é', '');
const flags = fc.string({ unit: fc.constantFrom('#', '0', '+', '-', ' '), maxLength: 2 });
const counts = fc.constantFrom('', '', '5', '12', '0', '*', '[1]', '[2]*', '[9]', '[', '[x]', '00');
const directive = fc
  .tuple(
    flags,
    counts,
    fc.constantFrom('', '', '.', '.0', '.2', '.11', '.*', '.[1]*'),
    fc.constantFrom('', '', '', '[1]', '[2]'),
    verbs,
  )
  .map((parts) => `%${parts.join('')}`);
/** Formats of printf, right and wrong. */
export const formats: fc.Arbitrary<string> = fc
  .array(fc.oneof({ weight: 4, arbitrary: directive }, { weight: 1, arbitrary: texts }), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''));
