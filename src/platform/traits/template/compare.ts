import { failed } from './fault.ts';
import { Int, typeOf, type Value } from './value.ts';

type Kind = 'bool' | 'int' | 'uint' | 'float' | 'string' | undefined;

function kindOf(value: Value): Kind {
  if (value instanceof Int) return value.type === 'uint8' ? 'uint' : 'int';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return 'float';
  return typeof value === 'string' ? 'string' : undefined;
}

function incompatible(a: Value, b: Value): Error {
  return failed(`incompatible types for comparison: ${typeOf(a)} and ${typeOf(b)}`);
}

/** Whether the first value equals one of the others: Go's `eq`. */
export function equalsAny(first: Value, others: readonly Value[]): boolean {
  if (others.length === 0) throw failed('missing argument for comparison');
  return others.some((other) => isEqual(first, other));
}

export function isEqual(a: Value, b: Value): boolean {
  const [kindOfA, kindOfB] = [kindOf(a), kindOf(b)];
  if (a instanceof Int && b instanceof Int) return a.value === b.value;
  if (kindOfA !== kindOfB) {
    if (a !== null && b !== null) throw incompatible(a, b);
    return false;
  }
  if (kindOfA !== undefined || a === null || b === null) return a === b;
  throw failed(`non-comparable types: ${typeOf(a)} and ${typeOf(b)}`);
}

/** Whether a value is less than another one: Go's `lt`. */
export function isLess(a: Value, b: Value): boolean {
  const [kindOfA, kindOfB] = [kindOf(a), kindOf(b)];
  if (kindOfA === undefined || kindOfB === undefined) throw failed('invalid type for comparison');
  if (a instanceof Int && b instanceof Int) return a.value < b.value;
  if (kindOfA !== kindOfB) throw incompatible(a, b);
  if (kindOfA === 'bool' || a === null || b === null) throw failed('invalid type for comparison');
  return a < b;
}

export function isLessOrEqual(a: Value, b: Value): boolean {
  return isLess(a, b) || isEqual(a, b);
}
