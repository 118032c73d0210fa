import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { MODULE_TENANCY_CRD } from '../../src/kinds/module-tenancy.ts';
import { chartParts } from './chart-parts.ts';
import { dashboard } from './dashboard.ts';
import { PLATFORM } from './definitions.ts';
import { kindsPage, withReferenceTables } from './reference-tables.ts';
import { type SchemaDigests, schemaDigests } from './schema-digests.ts';
import { valuesSchema } from './values-schema.ts';
import { valueRowsOf, withValuesTable } from './values-table.ts';

const ROOT = new URL('../../', import.meta.url);
const CHART = 'deploy/helm/module-controller';

const DIGESTS = 'test/manifests/schema-digests.json';

/** Files, or parts of files, that are made from the sources, by path. */
export function generatedManifests(): Readonly<Record<string, string>> {
  const textOf = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');
  const read = (name: string): string => textOf(`${CHART}/${name}`);
  const values = withControllers(read('values.yaml'));
  return {
    [`${CHART}/templates/platform/module-tenancy.yaml`]: moduleTenancyTemplate(),
    [`${CHART}/templates/_controllers.tpl`]: chartParts(),
    [`${CHART}/values.yaml`]: values,
    [`${CHART}/values.schema.json`]: `${JSON.stringify(valuesSchema(), null, 2)}\n`,
    [`${CHART}/files/dashboard.json`]: `${JSON.stringify(dashboard(), null, 2)}\n`,
    [`${CHART}/README.md`]: withValuesTable(read('README.md'), valueRowsOf(values)),
    'docs/reference.md': withReferenceTables(textOf('docs/reference.md')),
    'docs/kinds.md': kindsPage(),
    [DIGESTS]: `${JSON.stringify(schemaDigests(JSON.parse(textOf(DIGESTS)) as SchemaDigests), null, 2)}\n`,
  };
}

/** All controllers beside the core are on by default. */
function withControllers(values: string): string {
  const line = /^ {2}controllers: \[.*\]$/m;
  if (!line.test(values)) throw new Error('values.yaml has no line "  controllers: […]" of the platform');
  return values.replace(line, `  controllers: [${PLATFORM.map(({ name }) => name).join(', ')}]`);
}

function moduleTenancyTemplate(): string {
  const { metadata, ...rest } = MODULE_TENANCY_CRD;
  const head = stringify({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata });
  const text = stringify(rest, { lineWidth: 0 });
  return [
    '{{- if .Values.platform.enabled }}',
    '# Made by `npm run manifests` from src/kinds/module-tenancy.ts.',
    head.trimEnd(),
    '  annotations:',
    '    helm.sh/resource-policy: keep',
    '  labels:',
    '    {{- include "module-controller.labels" . | nindent 4 }}',
    text.trimEnd(),
    '{{- end }}',
    '',
  ].join('\n');
}
