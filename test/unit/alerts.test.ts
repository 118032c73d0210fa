import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createMetrics } from '../../src/metrics.ts';
import { BUILD_TIMEOUT_MS, ensureGoTool } from '../support/go-tools/programs.ts';
import { anchorsOf, tableOf } from './docs/markdown.ts';
import { ROOT, readText } from './docs/sources.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const ALERTS = new URL('deploy/helm/module-controller/files/alerts.yaml', ROOT);
const DASHBOARD = new URL('deploy/helm/module-controller/files/dashboard.json', ROOT);
const alerts: Alert[] = parse(readFileSync(ALERTS, 'utf8')).groups.flatMap(({ rules }: { rules: Alert[] }) => rules);
const dashboard = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[];
};

const metrics = createMetrics().registry.getMetricsAsArray() as unknown as readonly {
  readonly constructor: { readonly name: string };
  readonly name: string;
  readonly labelNames: readonly string[];
}[];
/** The labels of each series that the program exports. */
const LABELS = new Map(
  metrics.flatMap(({ constructor: type, name, labelNames }) =>
    type.name === 'Histogram'
      ? ['_bucket', '_sum', '_count'].map((suffix) => [name + suffix, [...labelNames, 'le']] as const)
      : [[name, labelNames] as const],
  ),
);
/** Those that Prometheus and its operator add. */
const OF_TARGETS = ['job', 'namespace', 'pod', 'instance'];
/** Those of the process, which every program of Node.js has. */
const OF_NODE = /^(process|nodejs)_|^up$/;
const WORDS = ['by', 'without', 'on', 'ignoring', 'and', 'or', 'unless', 'bool', 'group_left', 'offset'];

interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

/** The metrics that an expression reads, each with the labels that it selects by. */
function selectorsOf(expr: string): Selector[] {
  const bare = expr.replace(/\[[^\]]*\]/g, '').replace(/\b(by|without) \([^)]*\)/g, '');
  const found = bare.replace(/"[^"]*"/g, '""').matchAll(/([a-zA-Z_:][\w:]*)(\{[^}]*\})?(\s*\()?/g);
  return [...found].flatMap(([, metric = '', selector = '', call]) => {
    if (call !== undefined || WORDS.includes(metric)) return [];
    return [{ metric, labels: [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label]) => label ?? '') }];
  });
}

function faultsOf(expr: string): string[] {
  const selectors = selectorsOf(expr);
  if (selectors.length === 0) return [`reads no metric: ${expr}`];
  return selectors.flatMap(({ metric, labels }) => {
    if (OF_NODE.test(metric)) return [];
    const known = LABELS.get(metric);
    if (known === undefined) return [`there is no metric ${metric}`];
    return labels.filter((label) => ![...known, ...OF_TARGETS].includes(label)).map((label) => `${metric}: ${label}`);
  });
}

let promtool: string;
beforeAll(async () => {
  promtool = await ensureGoTool('promtool');
}, BUILD_TIMEOUT_MS);

const SAMPLES = 60;
const CORE = 'job="module-controller", namespace="koupleless-system", pod="core-1"';
const OTHER = 'job="module-controller", namespace="koupleless-system", pod="core-2"';
const PLATFORM = 'job="module-platform", namespace="koupleless-system", pod="platform-1"';
const OPERATIONS = 'module_controller_module_operations_total';
const MQTT = 'tunnel="mqtt_tunnel_provider"';
/** In the evaluated minute, 30 min after the start. */
const IN_90_DAYS = String(90 * 86_400);

/** Series of an installation in which all is well, one sample in 30 s. */
const HEALTHY: Readonly<Record<string, string>> = {
  [`up{${CORE}}`]: `1x${SAMPLES}`,
  [`up{${OTHER}}`]: `1x${SAMPLES}`,
  [`up{${PLATFORM}}`]: `1x${SAMPLES}`,
  [`module_controller_leases_known{${CORE}}`]: `10x${SAMPLES}`,
  [`module_controller_leases_known{${OTHER}}`]: `10x${SAMPLES}`,
  [`module_controller_leases_held{${CORE}}`]: `6x${SAMPLES}`,
  [`module_controller_leases_held{${OTHER}}`]: `4x${SAMPLES}`,
  [`module_controller_fenced{${CORE}}`]: `0x${SAMPLES}`,
  [`module_controller_vnodes{${CORE}, state="Reachable"}`]: `10x${SAMPLES}`,
  [`module_controller_vnodes{${CORE}, state="Unreachable"}`]: `0x${SAMPLES}`,
  [`module_controller_liveness_frozen{${CORE}, ${MQTT}}`]: `0x${SAMPLES}`,
  [`module_controller_tunnel_up{${CORE}, ${MQTT}}`]: `1x${SAMPLES}`,
  [`module_controller_tunnel_reconnects_total{${CORE}, ${MQTT}}`]: `0x${SAMPLES}`,
  [`${OPERATIONS}{${CORE}, command="install", result="done"}`]: `0+5x${SAMPLES}`,
  [`${OPERATIONS}{${CORE}, command="install", result="failed"}`]: `0x${SAMPLES}`,
  [`${OPERATIONS}{${CORE}, command="uninstall", result="timeout"}`]: `0x${SAMPLES}`,
  [`rest_client_requests_total{${CORE}, method="PATCH", code="200"}`]: `0+60x${SAMPLES}`,
  [`rest_client_requests_total{${CORE}, method="PATCH", code="403"}`]: `0x${SAMPLES}`,
  [`rest_client_requests_total{${CORE}, method="PATCH", code="503"}`]: `0x${SAMPLES}`,
  [`module_controller_node_lease_renew_total{${CORE}, result="ok"}`]: `0+30x${SAMPLES}`,
  [`module_controller_node_lease_renew_total{${CORE}, result="error"}`]: `0x${SAMPLES}`,
  [`module_controller_lease_takeovers_total{${CORE}, reason="New"}`]: `6x${SAMPLES}`,
  [`module_controller_watch_last_event_age_seconds{${CORE}, kind="Pod"}`]: `5x${SAMPLES}`,
  [`module_controller_client_id_conflicts_total{${CORE}}`]: `0x${SAMPLES}`,
  [`module_controller_node_name_conflicts_total{${CORE}}`]: `0x${SAMPLES}`,
  [`module_controller_foreign_leases_total{${CORE}}`]: `0x${SAMPLES}`,
  [`module_controller_intake_refused_total{${CORE}, ${MQTT}, reason="Source"}`]: `0x${SAMPLES}`,
  // The core has no webhook server, and exports the metric without a value of its own.
  [`module_controller_webhook_certificate_not_after_seconds{${CORE}}`]: `0x${SAMPLES}`,
  [`module_controller_webhook_certificate_not_after_seconds{${PLATFORM}}`]: `${IN_90_DAYS}x${SAMPLES}`,
  [`module_controller_certificate_reloads_total{${PLATFORM}, server="webhooks", result="error"}`]: `0x${SAMPLES}`,
  [`leader_election_master_status{${PLATFORM}, name="platform-rollout"}`]: `1x${SAMPLES}`,
  [`module_controller_reconciles_total{${PLATFORM}, controller="rollout", result="error"}`]: `0x${SAMPLES}`,
};

/** Alerts that fire, and the series that differ from those of a healthy installation. */
const CASES: readonly (readonly [string, readonly string[], Readonly<Record<string, string>>])[] = [
  ['all is well', [], {}],
  [
    'a base dies, an install fails, a replica is replaced, the API server is away for a moment',
    ['ModuleControllerBasesNotReady'],
    {
      [`module_controller_vnodes{${CORE}, state="Unreachable"}`]: '0x55 1 0x4',
      [`${OPERATIONS}{${CORE}, command="install", result="failed"}`]: '0x50 1x10',
      [`module_controller_lease_takeovers_total{${CORE}, reason="HolderGone"}`]: '0x50 4x10',
      [`rest_client_requests_total{${CORE}, method="PATCH", code="503"}`]: '0x56 20x4',
    },
  ],
  ['no replica runs', ['ModuleControllerDown'], { [`up{${CORE}}`]: '1x50 0x10', [`up{${OTHER}}`]: '1x50 0x10' }],
  ['one replica is down', [], { [`up{${OTHER}}`]: '1x50 0x10' }],
  [
    'no replica leads some bases',
    ['ModuleControllerBasesNotLed'],
    { [`module_controller_leases_held{${OTHER}}`]: '4x50 3x10' },
  ],
  ['a replica is fenced', ['ModuleControllerFenced'], { [`module_controller_fenced{${CORE}}`]: '0x50 1x10' }],
  [
    'the broker is away',
    ['ModuleControllerBrakeOn', 'ModuleControllerTunnelDown'],
    {
      [`module_controller_liveness_frozen{${CORE}, ${MQTT}}`]: '0x50 1x10',
      [`module_controller_tunnel_up{${CORE}, ${MQTT}}`]: '1x50 0x10',
    },
  ],
  [
    'many bases fall silent together',
    ['ModuleControllerBrakeOn'],
    { [`module_controller_liveness_frozen{${CORE}, ${MQTT}}`]: '0x50 1x10' },
  ],
  [
    'the link to the broker is lost again and again',
    ['ModuleControllerTunnelFlaps'],
    { [`module_controller_tunnel_reconnects_total{${CORE}, ${MQTT}}`]: '0x40 0+1x20' },
  ],
  [
    'an install fails each time',
    ['ModuleControllerInstallsFail'],
    { [`${OPERATIONS}{${CORE}, command="install", result="failed"}`]: '0x30 0+1x30' },
  ],
  [
    'an uninstall gets no answer',
    ['ModuleControllerUninstallsFail'],
    { [`${OPERATIONS}{${CORE}, command="uninstall", result="timeout"}`]: '0x30 0+1x30' },
  ],
  [
    'the API server fails',
    ['ModuleControllerApiErrors'],
    { [`rest_client_requests_total{${CORE}, method="PATCH", code="503"}`]: '0x30 0+10x30' },
  ],
  [
    'the API server is not reached',
    ['ModuleControllerApiErrors'],
    { [`rest_client_requests_total{${CORE}, method="PATCH", code="<error>"}`]: '0x30 0+10x30' },
  ],
  [
    'a right is missing',
    ['ModuleControllerApiForbidden'],
    { [`rest_client_requests_total{${CORE}, method="PATCH", code="403"}`]: '0x30 0+1x30' },
  ],
  [
    'Leases are not renewed',
    ['ModuleControllerLeaseRenewalsFail'],
    { [`module_controller_node_lease_renew_total{${CORE}, result="error"}`]: '0x40 0+5x20' },
  ],
  [
    'replicas take bases from each other',
    ['ModuleControllerLeadersFlap'],
    { [`module_controller_lease_takeovers_total{${CORE}, reason="HandedOver"}`]: '0x25 0+4x35' },
  ],
  [
    'a watch brings nothing',
    ['ModuleControllerWatchStale'],
    { [`module_controller_watch_last_event_age_seconds{${CORE}, kind="Pod"}`]: '5x50 200+30x10' },
  ],
  [
    'a stranger writes a Lease',
    ['ModuleControllerIdentityConflict'],
    { [`module_controller_foreign_leases_total{${CORE}}`]: '0x50 1x10' },
  ],
  [
    'somebody sends too many messages',
    ['ModuleControllerFlood'],
    { [`module_controller_intake_refused_total{${CORE}, ${MQTT}, reason="Source"}`]: '0x30 0+50x30' },
  ],
  ['a process of the platform is down', ['ModulePlatformDown'], { [`up{${PLATFORM}}`]: '1x40 0x20' }],
  [
    'no process leads the rollouts',
    ['ModulePlatformNotLed'],
    { [`leader_election_master_status{${PLATFORM}, name="platform-rollout"}`]: '1x50 0x10' },
  ],
  [
    'a reconcile fails each time',
    ['ModulePlatformReconcilesFail'],
    { [`module_controller_reconciles_total{${PLATFORM}, controller="rollout", result="error"}`]: '0x30 0+1x30' },
  ],
  [
    'a certificate is not renewed',
    ['ModulePlatformCertificateEnds'],
    { [`module_controller_webhook_certificate_not_after_seconds{${PLATFORM}}`]: `${6 * 86_400}x240` },
  ],
  [
    'a new certificate cannot be used',
    ['ModulePlatformCertificateReloadsFail'],
    { [`module_controller_certificate_reloads_total{${PLATFORM}, server="webhooks", result="error"}`]: '0x50 1x10' },
  ],
];

/** One test of promtool: exactly these alerts fire at the end. */
function promtoolTest([name, expected, changes]: (typeof CASES)[number]) {
  const isLong = Object.values(changes).some((values) => values.endsWith('x240'));
  const all = Object.entries({ ...HEALTHY, ...changes });
  const lengthen = (values: string): string => (isLong ? values.replace(/x60$/, 'x240') : values);
  return {
    name,
    interval: '30s',
    input_series: all.map(([series, values]) => ({ series, values: lengthen(values) })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: isLong ? '120m' : '30m',
        exp_samples: expected.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  };
}

async function runPromtool(args: readonly string[]): Promise<string> {
  return promisify(execFile)(promtool, [...args]).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }) => Promise.reject(new Error(`promtool ${args.join(' ')}\n${stdout}${stderr}`)),
  );
}

describe('the alerts', () => {
  it('are rules that Prometheus takes', async () => {
    expect(await runPromtool(['check', 'rules', fileURLToPath(ALERTS)])).toContain(`${alerts.length} rules found`);
  });

  it('fire when they should, and only then', { timeout: 180_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'alerts-'));
    try {
      const file = join(directory, 'alerts.yaml');
      const tests = CASES.map(promtoolTest);
      await writeFile(file, stringify({ rule_files: [fileURLToPath(ALERTS)], evaluation_interval: '30s', tests }));
      expect(await runPromtool(['test', 'rules', file])).toContain('SUCCESS');
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it('are all shown to fire', () => {
    const fired = new Set(CASES.flatMap(([, names]) => names));
    expect([...fired].sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });

  it.each(alerts)('read metrics and labels that there are: $alert', ({ expr }) => {
    expect(faultsOf(expr)).toEqual([]);
  });

  it.each(alerts)('have a severity and a runbook: $alert', ({ alert, labels, annotations }) => {
    expect(['warning', 'critical']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\.$/);
    const [page = '', anchor = ''] = (annotations.runbook_url ?? '').split('#');
    expect([page, anchor]).toEqual(['docs/runbooks.md', alert.toLowerCase()]);
    expect(anchorsOf(readText(page))).toContain(anchor);
  });

  it('are in the table of the runbooks, with their severity', () => {
    const rows = tableOf(readText('docs/runbooks.md')).map((row) => [row.Alert, row.Severity]);
    const wanted = alerts.map(({ alert, labels }) => [`[${alert}](#${alert.toLowerCase()})`, labels.severity]);
    expect(rows).toEqual(wanted);
  });
});

describe('the dashboard', () => {
  it('reads metrics and labels that there are', () => {
    const targets = dashboard.panels.flatMap(({ title, targets: all = [] }) =>
      all.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '5m') })),
    );
    expect(targets.length).toBeGreaterThan(15);
    expect(
      targets.flatMap(({ title, expr }) =>
        faultsOf(expr.replace(/="\$\w+"|=~"\$\w+"/g, '=""')).map((f) => `${title}: ${f}`),
      ),
    ).toEqual([]);
  });
});

describe('the check of expressions', () => {
  it('finds a metric and a label that there are not', () => {
    expect(faultsOf('sum by (a) (rate(tunnel_down{job="x"}[5m])) > 0')).toEqual(['there is no metric tunnel_down']);
    expect(faultsOf('module_controller_tunnel_up{job="x", tunel="mqtt"} == 0')).toEqual([
      'module_controller_tunnel_up: tunel',
    ]);
    expect(faultsOf('time() > 1')).toEqual(['reads no metric: time() > 1']);
    expect(faultsOf('histogram_quantile(0.9, rate(rest_client_request_duration_seconds_bucket{le="1"}[5m]))')).toEqual(
      [],
    );
  });
});
