import type { Bytes } from './bytes.ts';
import { parseDecimal, parseInteger } from './literals.ts';

/** Scalars of YAML 1.1 that are no strings. */
const WORDS: ReadonlySet<string> = new Set([
  ...['y', 'Y', 'n', 'N', '', '~', 'null', 'Null', 'NULL', 'on', 'On', 'ON', 'off', 'Off', 'OFF'],
  ...['yes', 'Yes', 'YES', 'no', 'No', 'NO', 'true', 'True', 'TRUE', 'false', 'False', 'FALSE'],
  ...['.nan', '.NaN', '.NAN', '.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF', '-.inf', '-.Inf', '-.INF'],
]);
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;
const SIGNED_BINARY = /^0b[-+][01]{1,63}$/;

/** Whether the YAML library of Go reads a plain scalar as this very string. */
export function isPlainString(text: Bytes): boolean {
  if (WORDS.has(text)) return false;
  if (text.startsWith('.')) return parseDecimal(text) === undefined;
  if (!/^[-+0-9]/.test(text)) return true;
  const plain = text.replaceAll('_', '');
  const isNumber = parseInteger(plain) !== undefined || isFloat(plain) || SIGNED_BINARY.test(plain);
  return !isNumber && !BASE_60.test(text) && !isTimestamp(text);
}

function isFloat(text: string): boolean {
  return FLOAT.test(text) && parseDecimal(text) !== undefined;
}

const DATE = /^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})$/;
const TIME = /^([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?$/;
const ZONE = /(?:Z|[-+]([0-9]{2}):([0-9]{2}))$/;

/** Whether `time.Parse` accepts one of the formats of the YAML library. */
function isTimestamp(text: string): boolean {
  const [date = '', separator, time = ''] = text.split(/([Tt]| +)/, 3);
  if (!isDate(DATE.exec(date))) return false;
  const rest = text.slice(date.length + (separator?.length ?? 0));
  if (separator === undefined) return true;
  if (separator.startsWith(' ')) return time === rest && isTime(TIME.exec(rest));
  const zone = ZONE.exec(rest);
  if (zone === null) return false;
  const [, hours = '0', minutes = '0'] = zone;
  return isTime(TIME.exec(rest.slice(0, zone.index))) && Number(hours) <= 24 && Number(minutes) <= 60;
}

function isDate(match: RegExpExecArray | null): boolean {
  if (match === null) return false;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  if (month < 1 || month > 12 || day < 1) return false;
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const last = month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return day <= last;
}

function isTime(match: RegExpExecArray | null): boolean {
  if (match === null) return false;
  const [hour, minute, second] = match.slice(1).map(Number) as [number, number, number];
  return hour < 24 && minute < 60 && second < 60;
}
