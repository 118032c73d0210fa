import { VARIABLES, type Variable } from '../../src/config/variables.ts';
import { ERROR_CATALOGUE } from '../../src/errors.ts';
import { MODULE_TENANCY_CRD } from '../../src/kinds/module-tenancy.ts';
import type { Crd } from '../../src/kube/crds.ts';
import { createMetrics } from '../../src/metrics.ts';
import { fieldsOf } from '../unit/docs/schema-table.ts';
import { CORE_NAME, DEFINITIONS } from './definitions.ts';

type Cells = readonly string[];

/** Tables of docs/reference.md, by the heading that they stand under. */
function tables(): Readonly<Record<string, readonly Cells[]>> {
  const variables = Object.entries(VARIABLES) as [string, Variable<unknown>][];
  return {
    Configuration: [
      ['Name', 'Default', 'Rule', 'Meaning'],
      ...variables.map(([name, { rule, default: text, meaning }]) => [code(name), code(text), rule.text, meaning]),
    ],
    Controllers: [
      ['Name', 'What it does', 'Deployment'],
      ...DEFINITIONS.map(({ name, summary }) => [code(name), sentence(summary), code(deploymentOf(name))]),
    ],
    Events: [
      ['Object', 'Type', 'Reason', 'Meaning'],
      ...DEFINITIONS.flatMap(({ events = [] }) =>
        events.map(({ about, type, reasons, meaning }) => [about, type, reasons.map(code).join(', '), meaning]),
      ),
    ],
    Metrics: [['Name', 'Type', 'Labels', 'Meaning'], ...metricRows()],
    'Error codes': [
      ['Code', 'Meaning'],
      ...Object.entries(ERROR_CATALOGUE).map(([name, meaning]) => [code(name), meaning]),
    ],
  };
}

/** The page with its tables. Throws where a heading or its table is missing. */
export function withReferenceTables(page: string): string {
  return Object.entries(tables()).reduce((text, [heading, rows]) => withTable(text, heading, rows), page);
}

/** docs/kinds.md: every kind of the program, with its fields. */
export function kindsPage(): string {
  const crds = [...DEFINITIONS.flatMap(({ crds: own = [] }) => own.map(({ crd }) => crd)), MODULE_TENANCY_CRD];
  const sorted = crds.toSorted((a, b) => (a.spec.names.kind < b.spec.names.kind ? -1 : 1));
  return [
    '# Kinds',
    '',
    'Custom resources of the platform, with all of their fields. `kubectl explain` shows the same, and the fields of a Pod in `template.spec`.',
    '',
    '<!-- Made by `npm run manifests` from the schemas in the sources. -->',
    '',
    ...sorted.flatMap(kindSection),
  ].join('\n');
}

interface Schema {
  readonly description?: string;
  readonly properties: Readonly<Record<string, object>>;
}

function kindSection({ spec: { group, names, versions } }: Crd): string[] {
  const [{ name = '', schema = {} } = {}] = versions as unknown as readonly { name: string; schema: object }[];
  const { description, properties } = (schema as { openAPIV3Schema: Schema }).openAPIV3Schema;
  const short = names.shortNames?.map((one) => code(one)).join(', ');
  return [
    `## ${names.kind}`,
    '',
    ...(description === undefined ? [] : [description, '']),
    `API version ${code(`${group}/${name}`)}; ${code(names.plural)}${short ? `, short name ${short}` : ''}.`,
    '',
    ...(['spec', 'status'] as const).flatMap((part) => {
      const fields = properties[part] === undefined ? [] : fieldsOf(properties[part]);
      if (fields.length === 0) return [];
      const rows = fields.map((line) => [code(line.slice(0, line.indexOf(': '))), line.slice(line.indexOf(': ') + 2)]);
      return [...tableText([[`Field of \`${part}\``, 'Meaning'], ...rows]), ''];
    }),
  ];
}

function metricRows(): Cells[] {
  const metrics = createMetrics().registry.getMetricsAsArray() as unknown as readonly {
    readonly constructor: { readonly name: string };
    readonly name: string;
    readonly help: string;
    readonly labelNames: readonly string[];
  }[];
  return metrics.map((metric) => [
    code(metric.name),
    metric.constructor.name.toLowerCase(),
    metric.labelNames.map(code).join(', '),
    metric.help,
  ]);
}

function deploymentOf(name: string): string {
  return name === CORE_NAME ? 'module-controller' : 'module-platform';
}

function code(text: string | undefined): string {
  return text ? `\`${text}\`` : '';
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function tableText(rows: readonly Cells[]): string[] {
  const [titles = [], ...others] = rows;
  const line = (cells: Cells): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(titles), `| ${titles.map(() => '---').join(' | ')} |`, ...others.map(line)].map((text) =>
    text.replaceAll('|  |', '| |'),
  );
}

/** Replaces the first table behind a heading. */
function withTable(page: string, heading: string, rows: readonly Cells[]): string {
  const lines = page.split('\n');
  const start = lines.indexOf(`## ${heading}`);
  const first = lines.findIndex((line, index) => index > start && line.startsWith('|'));
  const next = lines.findIndex((line, index) => index > start && line.startsWith('## '));
  if (start < 0 || first < 0 || (next >= 0 && first > next)) throw new Error(`no table behind "## ${heading}"`);
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('|'));
  return [...lines.slice(0, first), ...tableText(rows), ...lines.slice(end)].join('\n');
}
