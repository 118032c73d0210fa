/** One observation: what was seen of something that may go up with `x`, and with others that are not asked about. */
export interface Observation {
  readonly x: number;
  readonly y: number;
  /** As many in each observation. What they explain of `y` is neither counted as slope nor as noise. */
  readonly others?: readonly number[];
}

export interface Slope {
  /** Of `y`, for each one of `x`. */
  readonly slope: number;
  /** The standard error of it; Infinity: too few observations to say. */
  readonly error: number;
}

/** Below it what is left of a column is rounding: it is constant, or goes with those before it. */
const NOTHING_LEFT = 1e-9;

/** Least squares; undefined where `x` does not vary by itself. */
export function slopeOf(observations: readonly Observation[]): Slope | undefined {
  const y = centred(observations.map((one) => one.y));
  const x = centred(observations.map((one) => one.x));
  const spread = product(x, x);
  const width = observations[0]?.others?.length ?? 0;
  const others = Array.from({ length: width }, (_, at) => centred(observations.map((one) => one.others?.[at] ?? 0)));
  let explained = 0;
  for (const [index, other] of others.entries()) {
    const before = observations.reduce((sum, one) => sum + (one.others?.[index] ?? 0) ** 2, 0);
    if (product(other, other) <= NOTHING_LEFT * before) continue;
    explained += 1;
    for (const column of [y, x, ...others.slice(index + 1)]) takeOut(other, column);
  }
  const left = product(x, x);
  if (left === 0 || left <= NOTHING_LEFT * spread) return undefined;
  const slope = product(x, y) / left;
  const noise = y.reduce((sum, value, index) => sum + (value - slope * (x[index] ?? 0)) ** 2, 0);
  const freedom = observations.length - 2 - explained;
  return { slope, error: freedom < 1 ? Number.POSITIVE_INFINITY : Math.sqrt(noise / freedom / left) };
}

function centred(values: readonly number[]): number[] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.map((value) => value - mean);
}

function product(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

/** What of `column` goes with `other`. */
function takeOut(other: readonly number[], column: number[]): void {
  const share = product(other, column) / product(other, other);
  for (const [index, value] of other.entries()) column[index] = (column[index] ?? 0) - share * value;
}
