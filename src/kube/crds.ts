import { type Clock, sleep } from '../clock.ts';
import { ControllerError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { backoffMs } from '../queue/backoff.ts';
import { isConflict, isNotFound } from './api-error.ts';
import type { Condition, KubeObject } from './objects.ts';
import type { ResourceClient, ResourceKind } from './resource.ts';

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

const ESTABLISHED_WITHIN_MS = 30_000;
const BACKOFF = { baseMs: 50, maxMs: 2_000 };

/**
 * Creates or upgrades a CRD, and waits until the API server serves it. Never downgrades, takes over or removes one.
 * Rejects with ControllerError `Kube.CrdUnusable` when the names are taken, when objects may be stored in a version
 * that `crd` no longer has, or when the API server does not serve it in time; with the errors of the calls otherwise.
 */
export async function installCrd(crd: Crd, options: CrdInstallerOptions, signal?: AbortSignal): Promise<CrdResult> {
  const { client, logger } = options;
  const { name } = crd.metadata;
  const stored = await storedCrd(client, name);
  const result = stored === undefined ? 'Installed' : planOf(crd, stored);
  if (result === 'Installed') {
    try {
      await client.apply({ ...crd, metadata: { ...crd.metadata, name } });
    } catch (error) {
      if (!isConflict(error)) throw error;
      logger.warn({ crd: name }, 'CRD has fields of another manager: left as it is');
      return 'Foreign';
    }
    logger.info({ crd: name, schema: schemaOf(crd) }, 'CRD installed');
  } else if (result !== 'Current') {
    logger.warn({ crd: name, result, schema: stored && schemaOf(stored) }, 'CRD is not of this version: left as it is');
  }
  await untilEstablished(name, options, signal);
  return result;
}

function planOf(crd: Crd, stored: Crd): CrdResult {
  const schema = schemaOf(stored);
  if (schema === undefined) return 'Foreign';
  const wanted = schemaOf(crd) ?? 0;
  if (schema > wanted) return 'Newer';
  if (schema === wanted) return 'Current';
  const versions = crd.spec.versions.map(({ name }) => name);
  const lost = stored.status?.storedVersions?.filter((version) => !versions.includes(version)) ?? [];
  if (lost.length === 0) return 'Installed';
  throw unusable(crd.metadata.name, `objects may be stored as ${lost.join(', ')}, which the new CRD no longer has`);
}

/** Undefined where this program has not installed it. */
function schemaOf({ metadata }: Crd): number | undefined {
  const text = metadata.annotations?.[SCHEMA_ANNOTATION] ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

async function storedCrd(client: CrdInstallerOptions['client'], name: string): Promise<Crd | undefined> {
  try {
    return await client.get({ name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function untilEstablished(
  name: string,
  { client, clock }: CrdInstallerOptions,
  signal: AbortSignal | undefined,
): Promise<void> {
  const startedAt = clock.now();
  for (let looks = 1; ; looks++) {
    const { status } = await client.get({ name });
    const conditionOf = (type: string): Condition | undefined => status?.conditions?.find((one) => one.type === type);
    if (conditionOf('Established')?.status === 'True') return;
    const names = conditionOf('NamesAccepted');
    if (names?.status === 'False') throw unusable(name, `its names are taken: ${names.message ?? names.reason ?? ''}`);
    if (clock.now() - startedAt >= ESTABLISHED_WITHIN_MS) throw unusable(name, 'the API server does not serve it');
    await sleep(clock, backoffMs(looks, BACKOFF), signal);
    signal?.throwIfAborted();
  }
}

function unusable(name: string, why: string): ControllerError {
  return new ControllerError('Kube.CrdUnusable', `CustomResourceDefinition ${name}: ${why}`);
}
