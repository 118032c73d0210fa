/** Gauges that are no size of anything that could leak: states, ages, levels, and what Node tells of itself. */
const NO_SIZE =
  /^(process_|nodejs_(?!active_)|module_controller_watch_last_event_age_seconds|module_controller_tunnel_up|rest_client_requests_limit|module_controller_(fenced|liveness_frozen|webhook_certificate_not_after_seconds|workload_level))/;

/** Timers, pooled connections and shares of bases come and go by a few. */
const SLACK = { count: 4, share: 0.1 } as const;

/** Every gauge of a /metrics text that is the size of something, by series. */
export function sizeGaugesOf(text: string): Record<string, number> {
  const gauges = new Set<string>();
  const sizes: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const [, type] = /^# TYPE (\w+) gauge$/.exec(line) ?? [];
    if (type !== undefined && !NO_SIZE.test(type)) gauges.add(type);
    const [, series = '', name = '', value = ''] = /^((\w+)(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    if (gauges.has(name)) sizes[series] = Number(value);
  }
  return sizes;
}

/** `series: before -> after` of each that is larger, in a world that is as large as before. */
export function grownGauges(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): string[] {
  return Object.entries(after).flatMap(([series, now]) => {
    const then = before[series] ?? 0;
    return now - then > Math.max(SLACK.count, SLACK.share * then) ? [`${series}: ${then} -> ${now}`] : [];
  });
}
