import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { renderChart } from '../support/helm.ts';

const VALUES = new URL('kustomize.yaml', import.meta.url);

/** What each object has in a release only. */
export const OF_HELM = [
  'app.kubernetes.io/instance',
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/version',
  'helm.sh/chart',
  // A CRD, and all objects of its kind, outlive the release.
  'helm.sh/resource-policy',
  // kustomize does not know the ConfigMap that somebody has edited.
  'checksum/config',
];

/** Written by hand: people put their settings there. It has the same objects. */
export const BY_HAND = ['deploy/config.yaml'];

export async function kustomizeValues(): Promise<object> {
  return parse(await readFile(VALUES, 'utf8'));
}

/** The files that kustomize uses, by path, made from the chart. `controllers`: those of the platform that are on. */
export async function renderedManifests(controllers?: readonly string[]): Promise<Record<string, string>> {
  const values = await kustomizeValues();
  const platform = { enabled: true, controllers };
  const text = await renderChart({ values: controllers === undefined ? values : { ...values, platform } });
  const documents = text.split(/^---\n# Source: module-controller\/templates\//m).slice(1);
  const byFile = Map.groupBy(documents, (document) => document.slice(0, document.indexOf('\n')));
  const files = [...byFile].map(([template, parts]) => {
    const bodies = parts.map((part) => withoutHelm(part.slice(part.indexOf('\n') + 1)).trim());
    const header = `# Made by \`npm run manifests\` from deploy/helm/module-controller/templates/${template}.`;
    return [`deploy/${template}`, `${header}\n${bodies.join('\n---\n')}\n`] as const;
  });
  return Object.fromEntries(files.filter(([path]) => !BY_HAND.includes(path)));
}

/** Takes the lines of Helm away, and a map that has no others. */
function withoutHelm(text: string): string {
  const lines = text.split('\n').filter((line) => !OF_HELM.some((key) => line.trimStart().startsWith(`${key}:`)));
  const indentOf = (line: string): number => line.length - line.trimStart().length;
  return lines
    .filter((line, index) => {
      const next = lines[index + 1] ?? '';
      return !/^ *(labels|annotations):$/.test(line) || indentOf(next) > indentOf(line);
    })
    .join('\n');
}
