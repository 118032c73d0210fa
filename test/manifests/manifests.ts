import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { MODULE_TENANCY_CRD } from '../../src/kinds/module-tenancy.ts';
import { dashboard } from './dashboard.ts';
import { valuesSchema } from './values-schema.ts';
import { valueRowsOf, withValuesTable } from './values-table.ts';

const ROOT = new URL('../../', import.meta.url);
const CHART = 'deploy/helm/module-controller';

/** Files of the chart that are made from the sources, by path. */
export function generatedManifests(): Readonly<Record<string, string>> {
  const read = (name: string): string => readFileSync(new URL(`${CHART}/${name}`, ROOT), 'utf8');
  return {
    [`${CHART}/templates/platform/module-tenancy.yaml`]: moduleTenancyTemplate(),
    [`${CHART}/values.schema.json`]: `${JSON.stringify(valuesSchema(), null, 2)}\n`,
    [`${CHART}/files/dashboard.json`]: `${JSON.stringify(dashboard(), null, 2)}\n`,
    [`${CHART}/README.md`]: withValuesTable(read('README.md'), valueRowsOf(read('values.yaml'))),
  };
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
