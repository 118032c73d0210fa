import { type ConfigValue, isList, isMap, Literal } from './format/value.ts';
import { type ConfigFormat, parseContent } from './formats.ts';

/** Most keys that a warning names. */
export const MAX_SECRET_KEYS = 10;

/** Last words of keys with a secret. */
const WORDS = ['password', 'passwd', 'passphrase', 'pwd', 'secret', 'token', 'credential', 'credentials', 'apikey'];
/** Words in front of `key` that make it a secret one. */
const KINDS_OF_KEY = ['api', 'access', 'secret', 'private', 'signing', 'encryption'];
/** Values that a secret is filled into later: `${DB_PASSWORD}`. */
const PLACEHOLDER = /^\s*\$\{[^}]*\}\s*$/;

/** Keys of a file that seem to hold a secret, in its order. A file that cannot be read has none. */
export function secretKeysOf(format: ConfigFormat, content: string): string[] {
  const parsed = parseContent(format, content);
  const found: string[] = [];
  if (!('fault' in parsed)) collect(found, '', '', parsed.value);
  return found;
}

function collect(found: string[], path: string, key: string, value: ConfigValue): void {
  if (found.length >= MAX_SECRET_KEYS) return;
  if (isMap(value)) {
    for (const [name, item] of value) collect(found, path === '' ? name : `${path}.${name}`, name, item);
  } else if (isList(value)) {
    for (const [index, item] of value.entries()) collect(found, `${path}[${index}]`, key, item);
  } else if (isSecretName(key) && isSecretValue(value)) found.push(path);
}

/** Whether the last words of a key name a secret: `db.secret-name` names another thing. */
function isSecretName(key: string): boolean {
  const words = key
    .replace(/\[[0-9]+\]/g, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  const [before = '', last = ''] = [words.at(-2), words.at(-1)];
  return WORDS.includes(last) || (last === 'key' && KINDS_OF_KEY.includes(before));
}

function isSecretValue(value: ConfigValue): boolean {
  if (value instanceof Literal) return typeof value.value === 'number' || typeof value.value === 'bigint';
  return typeof value === 'string' && value.trim() !== '' && !PLACEHOLDER.test(value);
}
