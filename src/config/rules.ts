import { isIP, isIPv6 } from 'node:net';

/** How the text of a variable becomes a value. */
export interface Rule<T> {
  /** What a right value is, for people. */
  readonly text: string;
  /** Regular expression that each right value matches, and few wrong ones; the schema of the chart has it. */
  readonly pattern?: string;
  /** undefined = against the rule. */
  parse(text: string): T | undefined;
}

const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** What HTTP allows after `Bearer`. */
const KEY = /^[A-Za-z0-9._~+/=-]{16,512}$/;
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const NETWORKS = /^\s*[\da-fA-F.:]+\/\d{1,3}\s*(,\s*[\da-fA-F.:]+\/\d{1,3}\s*)*$/;
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/;

function matching(text: string, pattern: RegExp): Rule<string> {
  return { text, pattern: pattern.source, parse: (value) => (pattern.test(value) ? value : undefined) };
}

function integer(min: number, max: number): Rule<number> {
  return {
    text: `a whole number from ${min} to ${max}`,
    parse: (value) => {
      const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
  };
}

export interface Network {
  readonly address: string;
  readonly prefixLength: number;
}

/** `10.0.0.0/8`; undefined where it is none. */
function networkOf(text: string): Network | undefined {
  const [, address = '', length = ''] = /^([\da-fA-F.:]+)\/(\d{1,3})$/.exec(text) ?? [];
  const family = isIP(address);
  const prefixLength = Number(length);
  if (family === 0 || prefixLength > (family === 4 ? 32 : 128)) return undefined;
  return { address, prefixLength };
}

/** Namespaces that count as one owner of module names; `all`: every namespace does. */
export type SharedNamespaces = readonly (readonly string[])[] | 'all';

function sharedNamespacesOf(text: string): SharedNamespaces | undefined {
  if (text === '*') return 'all';
  const groups = text.split(',').map((group) => group.split('+').map((name) => name.trim()));
  const names = groups.flat();
  const isRight =
    groups.every(({ length }) => length >= 2) &&
    names.every((name) => DNS_LABEL.test(name)) &&
    new Set(names).size === names.length;
  return isRight ? groups : undefined;
}

const BOOLEANS = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

export const rules = {
  text: { text: 'any text', parse: (value: string) => value } satisfies Rule<string>,
  boolean: {
    text: '`true` or `false`',
    parse: (value: string) => BOOLEANS.get(value.toLowerCase()),
  } satisfies Rule<boolean>,
  integer,
  port: integer(0, 65535),
  labelValue: matching('a label value: at most 63 of `A-Za-z0-9._-`, letters or digits at both ends', LABEL_VALUE),
  clientId: matching('at most 128 of `A-Za-z0-9._-`, starting with a letter or digit', CLIENT_ID),
  host: {
    text: 'a host name or IP address, without scheme and port',
    parse: (value: string) => (HOST_NAME.test(value) || isIPv6(value) ? value : undefined),
  } satisfies Rule<string>,
  hosts: {
    text: 'host names or IP addresses, separated by commas',
    parse: (value: string) => {
      const hosts = value.split(',').map((host) => host.trim());
      return hosts.every((host) => HOST_NAME.test(host) || isIPv6(host)) ? Object.freeze(hosts) : undefined;
    },
  } satisfies Rule<readonly string[]>,
  networks: {
    text: 'networks such as `10.0.0.0/8`, separated by commas',
    pattern: NETWORKS.source,
    parse: (value: string) => {
      const networks = value.split(',').map((text) => networkOf(text.trim()));
      return networks.every((network) => network !== undefined) ? networks : undefined;
    },
  } satisfies Rule<readonly Network[]>,
  /** Two while one replaces the other. */
  keys: {
    text: 'one key, or two different ones separated by a comma, each 16 to 512 of `A-Za-z0-9._~+/=-`',
    parse: (value: string) => {
      const keys = value.split(',');
      const isRight = keys.length <= 2 && new Set(keys).size === keys.length && keys.every((key) => KEY.test(key));
      return isRight ? Object.freeze(keys) : undefined;
    },
  } satisfies Rule<readonly string[]>,
  sharedNamespaces: {
    text: '`*`, or groups of two or more namespaces such as `team-a+team-a-test`, separated by commas, each namespace at most once',
    parse: sharedNamespacesOf,
  } satisfies Rule<SharedNamespaces>,
  names: {
    text: 'names of `a-z0-9-` separated by commas, each at most once',
    parse: (value: string) => {
      const names = value.split(',').map((name) => name.trim());
      const isRight = names.every((name) => DNS_LABEL.test(name)) && new Set(names).size === names.length;
      return isRight ? Object.freeze(names) : undefined;
    },
  } satisfies Rule<readonly string[]>,
  dnsLabel: matching('a DNS label: at most 63 of `a-z0-9-`, letters or digits at both ends', DNS_LABEL),
  oneOf: <const T extends string>(...values: readonly T[]): Rule<T> => ({
    text: values.map((value) => `\`${value}\``).join(', '),
    parse: (text) => values.find((value) => value === text),
  }),
};
