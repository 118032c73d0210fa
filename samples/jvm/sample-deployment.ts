import type { Version } from './jars.ts';

export interface SampleChanges {
  readonly version: Version;
  /** Of the jar. */
  readonly url: string;
  readonly replicas: number;
  /** Name of the only Node that may have it. Default: the sample's affinity decides alone. */
  readonly node?: string | undefined;
}

/** The manifest of a sample module, as a user would edit it. */
export function sampleDeployment(manifest: string, { version, url, replicas, node }: SampleChanges): string {
  const edited = manifest
    .replace(/image: \S+/, `image: ${url}`)
    .replaceAll(/(version: |value: )"1\.0\.0"/g, `$1"${version}"`)
    .replace(/replicas: \d+/, `replicas: ${replicas}`);
  if (node === undefined) return edited;
  return edited.replace(/^( +)containers:/m, `$1nodeSelector: { kubernetes.io/hostname: ${node} }\n$&`);
}
