import { type Clock, sleep } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { backoffMs } from '../queue/backoff.ts';
import type { Condition, KubeObject } from './objects.ts';
import type { ResourceClient, ResourceKind } from './resource.ts';
import { ifFound, isConflict, isFieldConflict } from './transport/api-error.ts';

export const CRDS: ResourceKind = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  isNamespaced: false,
};

/** The parts of a CustomResourceDefinition that matter here. */
export interface Crd extends KubeObject {
  readonly spec: {
    readonly group: string;
    readonly scope: 'Namespaced' | 'Cluster';
    readonly names: {
      readonly kind: string;
      readonly plural: string;
      readonly singular?: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
      readonly [field: string]: unknown;
    }[];
  };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly storedVersions?: readonly string[] };
}

/** A whole number that grows with each change of a schema; on CRDs that this program has installed. */
export const SCHEMA_ANNOTATION = 'module-controller.koupleless.io/schema';

/**
 * `Installed`: it was created or upgraded. `Current`: it is as it should be. `Newer`: a newer version of this program
 * has installed it. `Foreign`: somebody else has, such as Helm. The last two stay as they are.
 */
export type CrdResult = 'Installed' | 'Current' | 'Newer' | 'Foreign';

export interface CrdInstallerOptions {
  readonly client: Pick<ResourceClient<Crd>, 'get' | 'apply'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const SERVED_WITHIN_MS = 30_000;
const BACKOFF = { baseMs: 50, maxMs: 2_000 };

/**
 * Creates or upgrades a CRD, and waits until the API server serves it. Never downgrades, takes over or removes one.
 * A version or a field that an upgrade adds is served a moment later: until then the API server drops the field.
 * Rejects with ControllerError `Kube.CrdUnusable` when the names are taken, when objects may be stored in a version
 * that `crd` no longer has, or when the API server does not serve it in time; with the errors of the calls otherwise.
 */
export async function installCrd(crd: Crd, options: CrdInstallerOptions, signal?: AbortSignal): Promise<CrdResult> {
  const { client, clock } = options;
  const { name } = crd.metadata;
  const startedAt = clock.now();
  let outcome: ApplyOutcome | undefined;
  // Each look decides again: a process of another version may install its own CRD between a read and a write.
  for (let looks = 1; ; looks++) {
    const stored = await storedCrd(client, name);
    const plan = outcome === 'Foreign' ? outcome : planOf(crd, stored);
    if (plan === 'Installed') outcome = await apply(crd, stored, options);
    else if (plan !== 'Deleted' && isServed(stored)) return reported(plan, outcome, { stored, ...options });
    if (clock.now() - startedAt >= SERVED_WITHIN_MS) throw unusable(name, WAITED_FOR[plan]);
    await sleep(clock, backoffMs(looks, BACKOFF), signal);
    signal?.throwIfAborted();
  }
}

type Plan = CrdResult | 'Deleted';

const NOT_SERVED = 'the API server does not serve it';
const WAITED_FOR: Readonly<Record<Plan, string>> = {
  Installed: 'other clients keep changing it',
  Current: NOT_SERVED,
  Newer: NOT_SERVED,
  Foreign: NOT_SERVED,
  Deleted: 'it is being deleted',
};

/** `Changed`: somebody has written it since it was read. */
type ApplyOutcome = 'Installed' | 'Foreign' | 'Changed';

async function apply(crd: Crd, stored: Crd | undefined, { client }: CrdInstallerOptions): Promise<ApplyOutcome> {
  const { resourceVersion } = stored?.metadata ?? {};
  try {
    await client.apply({ ...crd, metadata: { ...crd.metadata, ...(resourceVersion && { resourceVersion }) } });
    return 'Installed';
  } catch (error) {
    if (isFieldConflict(error)) return 'Foreign';
    if (isConflict(error)) return 'Changed';
    throw error;
  }
}

function reported(
  plan: CrdResult,
  outcome: ApplyOutcome | undefined,
  { stored, logger }: { readonly stored: Crd | undefined; readonly logger: Logger },
): CrdResult {
  const result = plan === 'Current' && outcome === 'Installed' ? outcome : plan;
  const fields = { crd: stored?.metadata.name, result, schema: schemaOf(stored) };
  if (result === 'Installed') logger.info(fields, 'CRD installed');
  else if (result !== 'Current') logger.warn(fields, 'CRD is of another version or of another tool: it is not changed');
  return result;
}

/** `Installed`: it has to be. `Deleted`: it goes with all of its objects, and is installed again after that. */
function planOf(crd: Crd, stored: Crd | undefined): Plan {
  const { name } = crd.metadata;
  const wanted = schemaOf(crd);
  if (wanted === undefined) throw new RangeError(`CRD ${name} has no annotation ${SCHEMA_ANNOTATION}`);
  if (stored === undefined) return 'Installed';
  if (stored.metadata.deletionTimestamp !== undefined) return 'Deleted';
  const schema = schemaOf(stored);
  if (schema === undefined) return 'Foreign';
  if (schema > wanted) return 'Newer';
  if (schema === wanted) return 'Current';
  const versions = crd.spec.versions.map((version) => version.name);
  const lost = stored.status?.storedVersions?.filter((version) => !versions.includes(version)) ?? [];
  if (lost.length === 0) return 'Installed';
  throw unusable(name, `objects may be stored as ${lost.join(', ')}, which the new CRD no longer has`);
}

/** Undefined where this program has not installed it. */
function schemaOf(crd: Crd | undefined): number | undefined {
  const text = crd?.metadata.annotations?.[SCHEMA_ANNOTATION] ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function storedCrd(client: CrdInstallerOptions['client'], name: string): Promise<Crd | undefined> {
  return ifFound(client.get({ name }));
}

/** Throws where it never will be. */
function isServed(crd: Crd | undefined): boolean {
  const conditionOf = (type: string): Condition | undefined =>
    crd?.status?.conditions?.find((one) => one.type === type);
  const names = conditionOf('NamesAccepted');
  if (conditionOf('Established')?.status === 'True') return true;
  if (crd === undefined || names?.status !== 'False') return false;
  throw unusable(crd.metadata.name, `its names are taken: ${names.message ?? names.reason ?? ''}`);
}

function unusable(name: string, why: string): ControllerError {
  return new ControllerError('Kube.CrdUnusable', `CustomResourceDefinition ${name}: ${why}`);
}
