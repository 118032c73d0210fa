import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';

/** Addresses of jars, and the rule of the policy `module-tenancy` about them. */

export const PREFIX = 'https://jars.example.com/team-a/';
export const FILE_PREFIX = 'file:///opt/team-a/';

const SIGNED = 'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20261128&X-Amz-Signature=0a';

/** What a namespace with both prefixes may have. */
export const HONEST_ADDRESSES = [
  `${PREFIX}shop-1.0.0-ark-biz.jar`,
  `${PREFIX}com/example/shop_web/1.0.0+7/shop_web-1.0.0+7.jar`,
  `${PREFIX}.m2/2.0/shop-2.0-SNAPSHOT-ark-biz.jar`,
  `${PREFIX}shop-1.0.0.jar?${SIGNED}`,
  `${PREFIX}shop-1.0.0.jar?at=a/../b;c`,
  `${FILE_PREFIX}.m2/shop-1.0.0-ark-biz.jar`,
] as const;

/** What it may not: a server, a file system or a parser could take each for a jar of somebody else. */
export const FOREIGN_ADDRESSES = [
  ...[
    '../team-b/x.jar',
    '..;/team-b/x.jar',
    '..;a=b/team-b/x.jar',
    '%2e%2e/team-b/x.jar',
    '.%2E/team-b/x.jar',
    '%252e%252e/team-b/x.jar',
    '%c0%ae%c0%ae/team-b/x.jar',
    '%u002e%u002e/team-b/x.jar',
    '..%00/team-b/x.jar',
    '..%2fteam-b/x.jar',
    '..%5cteam-b/x.jar',
    '..\\team-b\\x.jar',
    '.\t./team-b/x.jar',
    '.\n./team-b/x.jar',
    '..\r/team-b/x.jar',
    '\u{ff0e}\u{ff0e}/team-b/x.jar',
    '\u{ff0e}\u{ff0e}\u{ff0f}team-b/x.jar',
    '..\u{2215}team-b/x.jar',
    '\u200b../team-b/x.jar',
    '.../team-b/x.jar',
    './x.jar',
    '/x.jar',
    'a//x.jar',
    'x.jar;/../../team-b/y.jar',
    'x.jar#/../../team-b/y.jar',
    'x.jar?a#b.jar',
    'x.jar?a\\b',
    'x.jar?%zz',
    '@evil.example.com/x.jar',
    'x y.jar',
    'x.jar/',
    '.jar',
    '',
  ].map((rest) => PREFIX + rest),
  'https:///a.jar',
  'https:/jars.example.com/team-a/x.jar',
  'https:\\\\jars.example.com\\team-a\\x.jar',
  'https://jars.example.com@evil.example.com/team-a/x.jar',
  'https://jars.example.com\\@evil.example.com/team-a/x.jar',
  'https://jars.example.com.evil.example.com/team-a/x.jar',
  'https://me@jars.example.com/team-a/x.jar',
  'https://jars.example.com:8443/team-a/x.jar',
  'https://jars.example.com/team-ab/x.jar',
  'https://jars.example.com/x.jar',
  'http://jars.example.com/team-a/x.jar',
  'HTTPS://jars.example.com/team-a/x.jar',
  `${FILE_PREFIX}x.jar?/../../team-b/y.jar`,
  `${FILE_PREFIX}x.jar?a`,
  'file://opt/team-a/x.jar',
] as const;

const NASTY = [
  ...['.', '..', '/', '//', '\\', ';', ':', '@', '?', '#', '%', '&', '=', '+', '-', '_', '~', ',', '!', '$', "'", '"'],
  ...[
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    '<',
    '>',
    '|',
    '^',
    '`',
    '*',
    ' ',
    '\t',
    '\n',
    '\r',
    '\0',
    '\x7f',
    '\x85',
    '\u2028',
  ],
  ...['%2e', '%2E%2e', '%2f', '%5c', '%3b', '%252e', '%c0%ae', '%u002e', '%00', '%0a', '..;', ';jsessionid=1'],
  ...['\u{ff0e}', '\u{ff0f}', '\u2024', '\u2215', '\u200b', '\u00ad', '\u{1d7ec}', 'é', 'ß', 'İ'],
] as const;
const PLAIN = ['team-b', 'a', 'x', '1.0.0', 'shop-1.0.0', '.m2', 'x.jar'] as const;

/** Addresses below the prefix of the namespace, a part of them allowed. */
export const randomAddress: fc.Arbitrary<string> = fc
  .record({
    prefix: fc.constantFrom(PREFIX, PREFIX, PREFIX, FILE_PREFIX),
    folders: fc.array(
      fc.array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...PLAIN) }, fc.constantFrom(...NASTY)), {
        minLength: 1,
        maxLength: 2,
      }),
      { maxLength: 3 },
    ),
    file: fc.constantFrom('x', 'shop-1.0.0', '..', '', 'x.jar;'),
    query: fc.constantFrom('', '', `?${SIGNED}`, '?/../../team-b/x.jar', '?a#b'),
  })
  .map(({ prefix, folders, file, query }) =>
    [prefix, ...folders.map((parts) => `${parts.join('')}/`), file, '.jar', query].join(''),
  );

/** The rule as the manifest has it, in this process. The syntax of its expression is that of both languages. */
export function isAllowedBelow(prefixes: readonly string[], image: string): boolean {
  return prefixes.some(
    (prefix) =>
      image.startsWith(prefix) &&
      belowPrefix().test(image.slice(prefix.length)) &&
      !(prefix.startsWith('file:') && image.includes('?')),
  );
}

let rule: RegExp | undefined;

function belowPrefix(): RegExp {
  rule ??= readRule();
  return rule;
}

function readRule(): RegExp {
  const text = readFileSync(new URL('../../deploy/platform/policies.yaml', import.meta.url), 'utf8');
  const policies = parseAllDocuments(text).map((document) => document.toJS());
  const variables = policies.flatMap(({ spec }) => spec.variables ?? []);
  const { expression } = variables.find(({ name }) => name === 'belowPrefix');
  const [, literal = ''] = /^'(.*)'$/.exec(expression.trim()) ?? [];
  return new RegExp(literal.replaceAll('\\\\', '\\'));
}

/**
 * Whether an address stays below the prefix for every program that could fetch or serve it: for the parser of browsers,
 * and for a server that decodes again and again, cuts off parameters of segments, and takes similar characters for the
 * same.
 */
export function staysBelow(prefix: string, image: string): boolean {
  const [wanted, parsed] = [new URL(prefix), new URL(image)];
  const [path = ''] = image.split('?');
  return (
    parsed.protocol === wanted.protocol &&
    parsed.host === wanted.host &&
    parsed.username + parsed.password + parsed.hash === '' &&
    parsed.pathname === path.slice(`${parsed.protocol}//${parsed.host}`.length) &&
    servedPath(parsed.pathname).startsWith(wanted.pathname)
  );
}

function servedPath(path: string): string {
  let decoded = path;
  for (let before = ''; before !== decoded; ) {
    before = decoded;
    decoded = decoded
      .replace(/%u([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replace(/%c0%ae/gi, '.')
      .replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .normalize('NFKC')
      .replace(/[\0-\x20\x7f\u200b\u00ad]/g, '');
  }
  const segments: string[] = [];
  for (const segment of decoded.replaceAll('\\', '/').split('/').slice(1)) {
    const [name = ''] = segment.split(';');
    if (/^\.{2,}$/.test(name)) segments.pop();
    else if (name !== '.' && name !== '') segments.push(name);
  }
  return `/${segments.join('/')}`;
}
