/** Digits of a float, without zeros at their end. The value is `0.{digits}` times ten to the power of `point`. */
interface Decimal {
  readonly digits: string;
  readonly point: number;
}

export type FloatVerb = 'e' | 'E' | 'f' | 'g' | 'G';

/**
 * A finite float as Go's `strconv.FormatFloat` writes it. A precision of -1 means as many digits as are needed to read
 * the same float again.
 */
export function formatFloat(value: number, verb: FloatVerb, precision: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  return sign + formatDigits(Math.abs(value), verb, precision);
}

function formatDigits(value: number, verb: FloatVerb, precision: number): string {
  const isShortest = precision < 0;
  switch (verb) {
    case 'f': {
      const decimal = isShortest ? shortestOf(value) : roundedTo(value, precision);
      return fixed(decimal, isShortest ? Math.max(decimal.digits.length - decimal.point, 0) : precision);
    }
    case 'e':
    case 'E': {
      const decimal = isShortest ? shortestOf(value) : significantOf(value, precision + 1);
      return scientific(decimal, isShortest ? Math.max(decimal.digits.length - 1, 0) : precision, verb);
    }
    default: {
      const count = precision === 0 ? 1 : precision;
      return general(isShortest ? shortestOf(value) : significantOf(value, count), count, verb);
    }
  }
}

/** `precision`: most digits; below 0 as many as there are. */
function general(decimal: Decimal, precision: number, verb: 'g' | 'G'): string {
  const { digits, point } = decimal;
  const most = precision < 0 ? digits.length : precision;
  const isWhole = most > digits.length && digits.length >= point;
  const bound = precision < 0 ? 6 : isWhole ? digits.length : most;
  const exponent = point - 1;
  if (exponent < -4 || exponent >= bound) {
    return scientific(decimal, Math.min(most, digits.length) - 1, verb === 'g' ? 'e' : 'E');
  }
  return fixed(decimal, Math.max((most > point ? digits.length : most) - point, 0));
}

function fixed({ digits, point }: Decimal, precision: number): string {
  const whole = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0';
  if (precision === 0) return whole;
  const fraction = point >= 0 ? digits.slice(point) : '0'.repeat(-point) + digits;
  return `${whole}.${fraction.slice(0, precision).padEnd(precision, '0')}`;
}

function scientific({ digits, point }: Decimal, precision: number, letter: 'e' | 'E'): string {
  const fraction = precision > 0 ? `.${digits.slice(1, precision + 1).padEnd(precision, '0')}` : '';
  const exponent = digits === '' ? 0 : point - 1;
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${digits.charAt(0) || '0'}${fraction}${letter}${exponent < 0 ? '-' : '+'}${power}`;
}

function shortestOf(value: number): Decimal {
  if (value === 0) return { digits: '', point: 0 };
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  return { digits: mantissa.replace('.', ''), point: Number(exponent) + 1 };
}

/** Rounded to a number of significant digits. */
function significantOf(value: number, count: number): Decimal {
  if (value === 0) return { digits: '', point: 0 };
  const { point } = shortestOf(value);
  // The shortest digits may stand for a value that is a little less than a power of ten.
  const scale = count - (isLessThanPower(value, point - 1) ? point - 1 : point);
  return decimalOf(String(scaled(value, scale)), scale);
}

/** Whether a value is less than ten to the power of `exponent`. */
function isLessThanPower(value: number, exponent: number): boolean {
  const { mantissa, power } = partsOf(value);
  const left = mantissa * 2n ** BigInt(Math.max(power, 0)) * 10n ** BigInt(Math.max(-exponent, 0));
  return left < 2n ** BigInt(Math.max(-power, 0)) * 10n ** BigInt(Math.max(exponent, 0));
}

/** Rounded to a number of digits behind the point. */
function roundedTo(value: number, places: number): Decimal {
  return decimalOf(String(scaled(value, places)), places);
}

function decimalOf(integer: string, scale: number): Decimal {
  const digits = integer.replace(/0+$/, '');
  return digits === '' ? { digits, point: 0 } : { digits, point: integer.length - scale };
}

/** The exact value times ten to the power of `scale`, rounded to an integer, and to an even one in the middle. */
function scaled(value: number, scale: number): bigint {
  const { mantissa, power } = partsOf(value);
  const numerator = mantissa * 2n ** BigInt(Math.max(power, 0)) * 10n ** BigInt(Math.max(scale, 0));
  const denominator = 2n ** BigInt(Math.max(-power, 0)) * 10n ** BigInt(Math.max(-scale, 0));
  const quotient = numerator / denominator;
  const twice = (numerator % denominator) * 2n;
  const isUp = twice > denominator || (twice === denominator && quotient % 2n === 1n);
  return isUp ? quotient + 1n : quotient;
}

/** A float is `mantissa` times two to the power of `power`. */
function partsOf(value: number): { mantissa: bigint; power: number } {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & (2n ** 52n - 1n);
  return exponent === 0
    ? { mantissa: fraction, power: -1074 }
    : { mantissa: fraction + 2n ** 52n, power: exponent - 1075 };
}
