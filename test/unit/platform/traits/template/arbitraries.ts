import fc from 'fast-check';
import { FUNCTION_NAMES } from '../../../../../src/platform/traits/template/template.ts';

/** Terms of the grammar, and parts of terms for the mutations. */
const FIELDS = [
  ...['.', '$', '.AppName', '.Params', '.Params.NAME', '.Params.PORT', '.Params.RATIO', '.Params.NONE', '.Params.EMPTY'],
  ...['.Params.LIST', '.Params.NUMS', '.Params.MIXED', '.Params.MAP', '.Params.MAP.a', '.Params.NOPE', '.Params.TEXT'],
  ...['.Params.UNI', '.Params.QUOTE', '.Params.KEYS', '.Params.NESTED.items', '.name', '.a', '.Params.ON', '.Replicas'],
];
const VARIABLES = ['$', '$x', '$y', '$i', '$v'];
const NUMBERS = [
  ...['0', '1', '2', '-1', '3', '10', '1.5', '0.0', '-0.5', '1e3', '1e6', '1e21', '0x1F', '0b11', '0o17', '017', '1_0'],
  ...["'a'", "'é'", '9223372036854775807', '9223372036854775808', '-0x1e', '0x1p4', '1e400', '08', '.5', '5.', '2.0'],
];
const STRINGS = [
  ...['""', '"a"', '"b"', '","', '"a,b,c"', '"%d"', '"%v %s"', '"%5.2f|%-5d|%05d"', '"%q"', '"é世😀"', '"x\\n y\\n"'],
  ...['`raw`', '`a\nb`', '"\\xff"', '"\\u00e9"', '" pad "', '"aGk="', '"{\\"a\\":[1,2.5]}"', '"yes"', '"a: b"', '"\\\\"'],
];
const WORDS = ['true', 'false', 'nil'];
const PIECES = [
  ...['{{', '}}', '{{-', '-}}', '{{- ', ' -}}', '|', ':=', '=', '(', ')', ',', ' ', '\n', '.', '$', '"', '`', "'", '/*'],
  ...['*/', 'if', 'else', 'end', 'range', 'with', 'break', 'continue', 'define', 'template', 'block', 'else if', '%', '\\'],
  ...['-', '+', '0', '1', 'e', '_', 'é', '😀', '\t', ':', '!', '#'],
];

const pieces = fc.constantFrom(...PIECES, ...FIELDS, ...VARIABLES, ...NUMBERS, ...STRINGS, ...WORDS, ...FUNCTION_NAMES);
const texts = fc.constantFrom('a', ' ', '\n', ' x ', ' \n\t', '{', '}', '}}', 'é', 'key: ', '- ', '');
const opens = fc.constantFrom('{{', '{{ ', '{{- ');
const closes = fc.constantFrom('}}', ' }}', ' -}}');
const names = fc.constantFrom('"t"', '"u"', '`t`', '"trait"', '"nope"');

interface Grammar {
  term: string;
  command: string;
  pipeline: string;
  node: string;
  nodes: string;
}

function wrapped(...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  return fc.tuple(opens, ...parts, closes).map((all) => all.join(''));
}

const grammar = fc.letrec<Grammar>((tie: fc.LetrecTypedTie<Grammar>) => {
  const [term, command, pipeline, nodes] = [tie('term'), tie('command'), tie('pipeline'), tie('nodes')];
  const variable = fc.constantFrom(...VARIABLES);
  const end = wrapped(fc.constant('end'));
  const otherwise = fc.oneof(
    { weight: 4, arbitrary: fc.constant('') },
    { weight: 3, arbitrary: fc.tuple(wrapped(fc.constant('else')), nodes).map((parts) => parts.join('')) },
    { weight: 1, arbitrary: fc.tuple(wrapped(fc.constant('else if '), pipeline), nodes).map((parts) => parts.join('')) },
    { weight: 1, arbitrary: fc.tuple(wrapped(fc.constant('else with '), pipeline), nodes).map((parts) => parts.join('')) },
  );
  const heads = fc.oneof(
    fc.tuple(fc.constantFrom('if ', 'with ', 'range '), pipeline).map((parts) => parts.join('')),
    fc.tuple(fc.constantFrom('if ', 'with ', 'range '), variable, fc.constantFrom(' := ', ' = '), pipeline).map((parts) => parts.join('')),
    fc.tuple(fc.constant('range '), variable, fc.constantFrom(', ', ','), variable, fc.constantFrom(' := ', ' = '), pipeline).map((parts) => parts.join('')),
  );
  const called = fc.tuple(fc.constantFrom(...FUNCTION_NAMES), fc.array(term, { maxLength: 3 }));
  return {
    term: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(...FIELDS),
      fc.constantFrom(...STRINGS),
      fc.constantFrom(...NUMBERS),
      variable,
      fc.constantFrom(...WORDS),
      fc.tuple(variable, fc.constantFrom('.a', '.name', '.NAME')).map((parts) => parts.join('')),
      pipeline.map((inner) => `(${inner})`),
      fc.tuple(pipeline, fc.constantFrom('.a', '.name')).map(([inner, field]) => `(${inner})${field}`),
    ),
    command: fc.oneof(
      { depthSize: 'small' },
      { weight: 2, arbitrary: term },
      { weight: 5, arbitrary: called.map(([name, args]) => [name, ...args].join(' ')) },
      { weight: 1, arbitrary: fc.tuple(term, term).map((parts) => parts.join(' ')) },
    ),
    pipeline: fc.array(command, { minLength: 1, maxLength: 3 }).map((commands) => commands.join(' | ')),
    node: fc.oneof(
      { depthSize: 'small' },
      { weight: 4, arbitrary: texts },
      { weight: 8, arbitrary: wrapped(pipeline) },
      { weight: 2, arbitrary: wrapped(variable, fc.constantFrom(' := ', ' = ', ':='), pipeline) },
      { weight: 6, arbitrary: fc.tuple(wrapped(heads), nodes, otherwise, end).map((parts) => parts.join('')) },
      { weight: 1, arbitrary: wrapped(fc.constantFrom('break', 'continue', '/* c */')) },
      { weight: 1, arbitrary: wrapped(fc.constant('template '), names, fc.constant(' '), pipeline) },
      { weight: 1, arbitrary: fc.tuple(wrapped(fc.constant('define '), names), nodes, end).map((parts) => parts.join('')) },
      { weight: 1, arbitrary: fc.tuple(wrapped(fc.constant('block '), names, fc.constant(' '), pipeline), nodes, end).map((parts) => parts.join('')) },
    ),
    nodes: fc.array(tie('node'), { maxLength: 4 }).map((parts) => parts.join('')),
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

/** Templates by the grammar, half of them with a few changes. */
export const templates: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(grammar.node, { minLength: 1, maxLength: 5 }),
    fc.oneof(fc.constant([]), fc.array(mutations, { minLength: 1, maxLength: 3 })),
  )
  .map(([nodes, changes]) => mutated(nodes.join(''), changes))
  // Half of a surrogate pair is no text.
  .filter((template) => template.isWellFormed());

/** An action without any grammar. */
export const soups: fc.Arbitrary<string> = fc
  .array(pieces, { minLength: 1, maxLength: 8 })
  .map((parts) => `{{${parts.join('')}}}`);

const characters = fc.oneof(
  fc.constantFrom(...'abcABC019 _-.:#,\'"\n\t&<>{}[]*!%@`~+='),
  fc.constantFrom('é', 'ß', '世', '😀', '\0', '\x07', '\x1b', '\r', '\u00a0', '\ufeff', 'ǆ', 'İ', '٣'),
);
const words = fc.constantFrom('yes', 'null', '1.5', '0x1f', '1e3', '2020-01-01', '---', '- a', 'a: b', ' #', '', '<<', '12:30', '0b-1');
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
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Number.isInteger(number) || Math.abs(number) >= 2 ** 63),
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
  .tuple(flags, counts, fc.constantFrom('', '', '.', '.0', '.2', '.11', '.*', '.[1]*'), fc.constantFrom('', '', '', '[1]', '[2]'), verbs)
  .map((parts) => `%${parts.join('')}`);
/** Formats of printf, right and wrong. */
export const formats: fc.Arbitrary<string> = fc
  .array(fc.oneof({ weight: 4, arbitrary: directive }, { weight: 1, arbitrary: texts }), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''));
