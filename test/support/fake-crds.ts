import { isDeepStrictEqual } from 'node:util';
import type { Crd, CrdInstallerOptions } from '../../src/kube/crds.ts';
import type { Condition } from '../../src/kube/objects.ts';
import { ApiError } from '../../src/kube/transport/api-error.ts';

interface StoredCrd {
  readonly crd: Crd;
  /** Owns the annotations and the versions. */
  readonly manager: string;
  readonly version: number;
  readonly storedVersions: readonly string[];
}

/** The CRDs of an API server: owners of fields, versions, accepted names. `test/contract/crds.ts` compares it. */
export class FakeCrds {
  readonly #stored = new Map<string, StoredCrd>();
  #version = 0;
  /** Reads until a CRD has conditions. */
  readsUntilServed = 0;
  /** Reads of CRDs that exist. */
  reads = 0;

  clientOf(manager: string): CrdInstallerOptions['client'] {
    return {
      get: async ({ name }) => this.#read(name),
      apply: async (object, { isForced = false } = {}) => this.#apply(manager, object as unknown as Crd, isForced),
    };
  }

  beginDeletion(name: string): void {
    const stored = this.#find(name);
    const metadata = { ...stored.crd.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    this.#stored.set(name, { ...stored, crd: { ...stored.crd, metadata } });
  }

  endDeletion(name: string): void {
    this.#stored.delete(name);
  }

  #read(name: string): Crd {
    const { crd, version, storedVersions } = this.#find(name);
    this.reads += 1;
    const conditions = this.reads > this.readsUntilServed ? this.#conditionsOf(crd) : [];
    const metadata = { ...crd.metadata, resourceVersion: String(version) };
    return { ...crd, metadata, status: { conditions, storedVersions } };
  }

  #find(name: string): StoredCrd {
    const stored = this.#stored.get(name);
    if (stored === undefined) throw new ApiError('no such CRD', { status: 404, reason: 'NotFound' });
    return stored;
  }

  #apply(manager: string, { metadata, spec }: Crd, isForced: boolean): Crd {
    const { resourceVersion, ...kept } = metadata;
    const crd: Crd = { metadata: kept, spec };
    const before = this.#stored.get(metadata.name);
    if (before !== undefined) {
      const isSame = isDeepStrictEqual([before.crd.spec, before.crd.metadata.annotations], [spec, kept.annotations]);
      if (before.manager !== manager && !isSame && !isForced) throw conflict('FieldManagerConflict');
      if (resourceVersion !== undefined && resourceVersion !== String(before.version)) throw conflict();
    }
    const names = spec.versions.map((version) => version.name);
    if (before?.storedVersions.some((version) => !names.includes(version))) {
      throw new ApiError('a stored version is missing', { status: 422, reason: 'Invalid' });
    }
    const storage = spec.versions.filter((version) => version.storage).map(({ name }) => name);
    const storedVersions = [...new Set([...(before?.storedVersions ?? []), ...storage])];
    this.#stored.set(metadata.name, { crd, manager, version: ++this.#version, storedVersions });
    return crd;
  }

  #conditionsOf({ metadata, spec }: Crd): Condition[] {
    // The first with a name keeps it.
    const [first] = [...this.#stored.values()].filter(
      ({ crd }) => crd.spec.group === spec.group && crd.spec.names.kind === spec.names.kind,
    );
    if (first?.crd.metadata.name === metadata.name) {
      return [
        { type: 'NamesAccepted', status: 'True' },
        { type: 'Established', status: 'True' },
      ];
    }
    const message = `"${spec.names.kind}" is already in use`;
    return [
      { type: 'NamesAccepted', status: 'False', reason: 'KindConflict', message },
      { type: 'Established', status: 'False', reason: 'NotAccepted' },
    ];
  }
}

function conflict(cause?: string): ApiError {
  const causes = cause === undefined ? [] : [{ reason: cause, field: '.spec.versions' }];
  return new ApiError('the write was refused', { status: 409, reason: 'Conflict', causes });
}
