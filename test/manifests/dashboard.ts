/** A Grafana dashboard, made from a list of expressions. */

type Unit = 'short' | 's' | 'reqps' | 'bytes' | 'percentunit' | 'dateTimeFromNow';

interface Panel {
  readonly title: string;
  /** What it means, for whoever sees it first. */
  readonly description?: string;
  readonly kind?: 'stat' | 'timeseries';
  readonly unit?: Unit;
  /** By the legend of the series. */
  readonly targets: Readonly<Record<string, string>>;
}

const CORE = 'job="module-controller", namespace=~"$namespace"';
const PLATFORM = 'job="module-platform", namespace=~"$namespace"';
const BOTH = 'job=~"module-controller|module-platform", namespace=~"$namespace"';
const RATE = '[$__rate_interval]';

function quantile(share: number, metric: string, selector: string, by = ''): string {
  const labels = ['le', ...(by === '' ? [] : [by])].join(', ');
  return `histogram_quantile(${share}, sum by (${labels}) (rate(${metric}_bucket{${selector}}${RATE})))`;
}

const ROWS: Readonly<Record<string, readonly Panel[]>> = {
  Bases: [
    {
      title: 'Bases',
      kind: 'stat',
      targets: { bases: `max(module_controller_leases_known{${CORE}})` },
    },
    {
      title: 'Bases without a leader',
      description: 'More than 0 for seconds when a replica dies.',
      kind: 'stat',
      targets: {
        bases: `max(module_controller_leases_known{${CORE}}) - sum(module_controller_leases_held{${CORE}})`,
      },
    },
    {
      title: 'Bases by state',
      description: 'Unreachable: silent for 25 s. Suspended: silent, and nobody is judged.',
      targets: { '{{state}}': `max by (state) (module_controller_vnodes{${CORE}})` },
    },
    {
      title: 'Links',
      description: '1: up. Brake 1: no base is judged.',
      targets: {
        '{{pod}} {{tunnel}}': `module_controller_tunnel_up{${CORE}}`,
        'brake {{tunnel}}': `max by (tunnel) (module_controller_liveness_frozen{${CORE}})`,
      },
    },
  ],
  Modules: [
    {
      title: 'Finished commands',
      unit: 'reqps',
      targets: {
        '{{command}} {{result}}': `sum by (command, result) (rate(module_controller_module_operations_total{${CORE}}${RATE}))`,
      },
    },
    {
      title: 'Time of a command, p90',
      unit: 's',
      targets: {
        '{{command}}': quantile(0.9, 'module_controller_module_operation_duration_seconds', CORE, 'command'),
      },
    },
    {
      title: 'Modules that no Pod asks for',
      targets: {
        unknown: `sum(module_controller_unknown_modules{${CORE}})`,
        'kept from before': `sum(module_controller_preexisting_modules{${CORE}})`,
      },
    },
    {
      title: 'Messages',
      unit: 'reqps',
      targets: {
        '{{type}}': `sum by (type) (rate(module_controller_tunnel_messages_total{${CORE}}${RATE}))`,
        'refused {{code}}': `sum by (code) (rate(module_controller_tunnel_invalid_messages_total{${CORE}}${RATE}))`,
        'unread {{reason}}': `sum by (reason) (rate(module_controller_intake_refused_total{${CORE}}${RATE}))`,
      },
    },
  ],
  Replicas: [
    {
      title: 'Bases that each replica leads',
      targets: { '{{pod}}': `module_controller_leases_held{${CORE}}` },
    },
    {
      title: 'Takeovers and losses',
      unit: 'reqps',
      targets: {
        'taken {{reason}}': `sum by (reason) (rate(module_controller_lease_takeovers_total{${CORE}}${RATE}))`,
        'lost {{reason}}': `sum by (reason) (rate(module_controller_lease_losses_total{${CORE}}${RATE}))`,
      },
    },
    {
      title: 'Members and fences',
      targets: {
        'members {{pod}}': `module_controller_members{${CORE}}`,
        'fenced {{pod}}': `module_controller_fenced{${CORE}}`,
      },
    },
    {
      title: 'Renewals of Leases',
      unit: 'reqps',
      targets: { '{{result}}': `sum by (result) (rate(module_controller_node_lease_renew_total{${CORE}}${RATE}))` },
    },
  ],
  'API server': [
    {
      title: 'Requests',
      unit: 'reqps',
      targets: { '{{job}} {{code}}': `sum by (job, code) (rate(rest_client_requests_total{${BOTH}}${RATE}))` },
    },
    {
      title: 'Time of a request, p90',
      unit: 's',
      targets: { '{{verb}}': quantile(0.9, 'rest_client_request_duration_seconds', BOTH, 'verb') },
    },
    {
      title: 'Queues',
      targets: { '{{pod}} {{name}}': `workqueue_depth{${BOTH}}` },
    },
    {
      title: 'Age of the last event of a watch',
      unit: 's',
      targets: { '{{pod}} {{kind}}': `module_controller_watch_last_event_age_seconds{${BOTH}}` },
    },
  ],
  Process: [
    { title: 'Memory', unit: 'bytes', targets: { '{{pod}}': `process_resident_memory_bytes{${BOTH}}` } },
    { title: 'CPU', unit: 'percentunit', targets: { '{{pod}}': `rate(process_cpu_seconds_total{${BOTH}}${RATE})` } },
    {
      title: 'Lag of the event loop, p99',
      description: 'Includes its own 0.1 s.',
      unit: 's',
      targets: { '{{pod}}': `nodejs_eventloop_lag_p99_seconds{${BOTH}}` },
    },
  ],
  Platform: [
    { title: 'Who leads', targets: { '{{name}} {{pod}}': `leader_election_master_status{${PLATFORM}}` } },
    {
      title: 'Reconciles',
      unit: 'reqps',
      targets: {
        '{{controller}} {{result}}': `sum by (controller, result) (rate(module_controller_reconciles_total{${PLATFORM}}${RATE}))`,
      },
    },
    {
      title: 'Admission reviews',
      unit: 'reqps',
      targets: {
        '{{resource}} {{result}}': `sum by (resource, result) (rate(module_controller_admission_reviews_total{${PLATFORM}}${RATE}))`,
      },
    },
    {
      title: 'Certificate of the webhook server ends',
      kind: 'stat',
      unit: 'dateTimeFromNow',
      targets: {
        end: `1000 * min(module_controller_webhook_certificate_not_after_seconds{${PLATFORM}} > 0)`,
      },
    },
    {
      title: 'Export feed',
      targets: {
        services: `max(module_controller_exported_services{${PLATFORM}})`,
        watches: `sum(module_controller_export_watches{${PLATFORM}})`,
      },
    },
  ],
};

const DATASOURCE = { type: 'prometheus', uid: '$datasource' };
const [WIDTH, HEIGHT, COLUMNS] = [6, 7, 24] as const;

export function dashboard(): object {
  let id = 0;
  let y = 0;
  const panels = Object.entries(ROWS).flatMap(([title, row]) => {
    const head = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { h: 1, w: COLUMNS, x: 0, y: y++ },
      panels: [],
    };
    const all = row.map((panel, index) => {
      const x = (index * WIDTH) % COLUMNS;
      const line = Math.floor((index * WIDTH) / COLUMNS);
      return panelOf(panel, ++id, { h: HEIGHT, w: WIDTH, x, y: y + line * HEIGHT });
    });
    y += Math.ceil((row.length * WIDTH) / COLUMNS) * HEIGHT;
    return [head, ...all];
  });
  return {
    uid: 'module-controller',
    title: 'Module Controller',
    tags: ['koupleless'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
        {
          name: 'namespace',
          type: 'query',
          label: 'Namespace',
          datasource: DATASOURCE,
          query: 'label_values(module_controller_leases_known, namespace)',
          includeAll: true,
          multi: true,
          current: { text: 'All', value: '$__all' },
          refresh: 2,
        },
      ],
    },
    panels,
  };
}

function panelOf(
  { title, description, kind = 'timeseries', unit = 'short', targets }: Panel,
  id: number,
  gridPos: object,
) {
  return {
    id,
    type: kind,
    title,
    ...(description && { description }),
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: { defaults: { unit, min: unit === 'dateTimeFromNow' ? undefined : 0 }, overrides: [] },
    targets: Object.entries(targets).map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr,
      legendFormat,
    })),
  };
}
