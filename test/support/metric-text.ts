/** The sum of the series of a metric in a /metrics text; `fits`: of those whose labels, as written, do. */
export function metricOf(text: string, name: string, fits: (labels: string) => boolean = () => true): number {
  return [...text.matchAll(/^(\w+)(\{.*\})? (\S+)$/gm)].reduce(
    (sum, [, found, labels = '', value]) => (found === name && fits(labels) ? sum + Number(value) : sum),
    0,
  );
}
