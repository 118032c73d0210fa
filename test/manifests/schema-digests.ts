import { createHash } from 'node:crypto';
import { type Crd, SCHEMA_ANNOTATION } from '../../src/kube/crds.ts';
import { DEFINITIONS } from './definitions.ts';

/** By name of a CRD: the revision that it has, and a digest of what the API server gets of it. */
export type SchemaDigests = Readonly<Record<string, { readonly revision: string; readonly digest: string }>>;

/**
 * The digests of all CRDs that controllers install. Throws for a schema that has changed since `kept` under the same
 * revision: an installed CRD would stay as it is.
 */
export function schemaDigests(kept: SchemaDigests, crds: readonly Crd[] = ownCrds()): SchemaDigests {
  const digests = Object.fromEntries(crds.map((crd) => [crd.metadata.name, digestOf(crd)]));
  for (const [name, { revision, digest }] of Object.entries(digests)) {
    const before = kept[name];
    if (before === undefined || before.digest === digest) continue;
    if (Number(revision) <= Number(before.revision))
      throw new Error(`the schema of ${name} has changed: raise its schemaRevision above ${before.revision}`);
  }
  return digests;
}

function ownCrds(): Crd[] {
  return DEFINITIONS.flatMap(({ crds = [] }) => crds.map(({ crd }) => crd));
}

function digestOf({ metadata, spec }: Crd): { revision: string; digest: string } {
  const digest = createHash('sha256').update(JSON.stringify(spec)).digest('hex');
  return { revision: metadata.annotations?.[SCHEMA_ANNOTATION] ?? '', digest };
}
