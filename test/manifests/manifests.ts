import { stringify } from 'yaml';
import { MODULE_TENANCY_CRD } from '../../src/kinds/module-tenancy.ts';

/** Manifests that are made from schemas in the sources, by path. */
export function generatedManifests(): Readonly<Record<string, string>> {
  const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', ...MODULE_TENANCY_CRD };
  return {
    'deploy/platform/module-tenancy.yaml': `# Made by \`npm run manifests\` from src/kinds/module-tenancy.ts.\n${stringify(crd, { lineWidth: 0 })}`,
  };
}
