/** The few parts of DER (ITU-T X.690) that an X.509 certificate needs. */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const digits: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) digits.unshift(rest % 256);
  return Buffer.from([0x80 | digits.length, ...digits]);
}

function encode(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), encodeLength(content.length), content]);
}

export const sequence = (...parts: Uint8Array[]): Buffer => encode(TAG.sequence, ...parts);
export const set = (...parts: Uint8Array[]): Buffer => encode(TAG.set, ...parts);
export const octetString = (content: Uint8Array): Buffer => encode(TAG.octetString, content);
export const utf8String = (text: string): Buffer => encode(TAG.utf8String, Buffer.from(text, 'utf8'));
export const booleanTrue = (): Buffer => encode(TAG.boolean, Buffer.from([0xff]));

/** `bytes` is big-endian, positive and minimal already: its first byte lies between 0x01 and 0x7f. */
export const integer = (bytes: Uint8Array): Buffer => encode(TAG.integer, bytes);

export const bitString = (content: Uint8Array, unusedBits = 0): Buffer =>
  encode(TAG.bitString, Buffer.from([unusedBits]), content);

/** `[number]` around complete elements. */
export const explicitTag = (number: number, content: Uint8Array): Buffer => encode(0xa0 | number, content);
/** `[number]` in place of the tag of a primitive type. */
export const implicitTag = (number: number, content: Uint8Array): Buffer => encode(0x80 | number, content);

export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return encode(TAG.objectIdentifier, Buffer.from([first * 40 + second, ...rest.flatMap(base128Digits)]));
}

function base128Digits(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

/** RFC 5280, 4.1.2.5: UTCTime through 2049, GeneralizedTime from 2050. */
export function time(date: Date): Buffer {
  const text = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;
  return date.getUTCFullYear() < 2050
    ? encode(TAG.utcTime, Buffer.from(text.slice(2), 'ascii'))
    : encode(TAG.generalizedTime, Buffer.from(text, 'ascii'));
}
