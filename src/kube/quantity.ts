const QUANTITY = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i))?$/;
const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
  Pi: 1024 ** 5,
  Ei: 1024 ** 6,
};

/** A resource quantity as a number: `1Gi`, `128e6`, `500m`. Undefined for what is none. */
export function quantityOf(text: string | null | undefined): number | undefined {
  const [, digits, exponent, suffix] = QUANTITY.exec(text ?? '') ?? [];
  if (digits === undefined) return undefined;
  if (exponent !== undefined) return Number(`${digits}${exponent}`);
  return Number(digits) * (FACTORS[suffix ?? ''] ?? 1);
}
