/** The value of a merge patch (RFC 7386) that makes `before` to `after`: it removes what is null. */
export function replacing(after: object, before: object | undefined): Record<string, unknown> {
  const [next, former] = [after, before ?? {}] as [Record<string, unknown>, Record<string, unknown>];
  const gone = Object.keys(former).filter((key) => !Object.hasOwn(next, key) || next[key] === undefined);
  return {
    ...Object.fromEntries(
      Object.entries(next).map(([key, value]) => [
        key,
        isMap(value) ? replacing(value, Object.hasOwn(former, key) ? mapIn(former[key]) : undefined) : value,
      ]),
    ),
    ...Object.fromEntries(gone.map((key) => [key, null])),
  };
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapIn(value: unknown): object | undefined {
  return isMap(value) ? value : undefined;
}
