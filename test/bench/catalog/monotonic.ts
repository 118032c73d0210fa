/** The clock that all processes of a machine share and nobody sets, ms. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
