import type { Pool } from 'undici';
import { MODULE_DEPLOYMENTS } from '../../../../src/kinds/workload-kinds.ts';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import { collectionPathOf } from '../../../../src/kube/resource.ts';
import { CATALOG_ANNOTATION } from '../../../../src/platform/catalog/compose/compose.ts';
import { MODULES, type ModuleObject } from '../../../../src/platform/catalog/module/module.ts';
import { ApiWriter } from '../../scale/floor/api-writer.ts';
import { keepWatching, poolOf } from '../../scale/http-pool.ts';
import { PATHS } from '../objects.ts';
import { moduleLineOf, type ObjectLine } from '../observer/object-line.ts';
import { ApplyBody } from './apply-body.ts';
import type { FloorCounters, FloorOptions } from './floor-process.ts';

/** At 100 changes a second a write has a connection at once, unless the API server is overloaded. */
const CONNECTIONS = 16;
const PAGE = 500;
/** The manager of the catalog: the fields that it has written stay its own. */
const FIELD_MANAGER = 'platform-catalog';

interface Known {
  readonly path: string;
  readonly statusPath: string;
  readonly body: ApplyBody;
  /** The value that was applied last. */
  value: number;
  /** Generation of the Module: each change is one more. */
  generation: number;
}

/** The floor: from the event of a Module to the apply of its workload, and then to the Module's status. */
export class Floor {
  readonly counters: FloorCounters;
  readonly #api: ApiWriter;
  readonly #modules: ReadonlyMap<string, Known>;

  private constructor(api: ApiWriter, counters: FloorCounters, modules: ReadonlyMap<string, Known>) {
    this.#api = api;
    this.counters = counters;
    this.#modules = modules;
  }

  /** Resolves when the watch stands. */
  static async start(options: FloorOptions): Promise<Floor> {
    const { server, certificateAuthority, token, env } = options;
    const headers = { authorization: `Bearer ${token}` };
    const pool = poolOf(server, { ca: certificateAuthority }, 1);
    const { items: modules, resourceVersion } = await listed<ModuleObject>(pool, PATHS.modules, headers);
    const { items: workloads } = await listed<KubeObject>(pool, PATHS.workloads, headers);
    const counters: FloorCounters = { writes: 0, refused: 0, failed: 0 };
    const api = new ApiWriter({ server, certificateAuthority, token, connections: CONNECTIONS }, counters);
    const floor = new Floor(api, counters, knownOf(modules, workloads, env));
    await new Promise<void>((resolve, reject) => {
      const onLine = (line: Buffer): void => {
        const module = moduleLineOf(line);
        if (module) floor.#onModule(module);
      };
      const watching = { path: PATHS.modules, resourceVersion, headers, onOpen: resolve, onLine };
      keepWatching(pool, watching).catch((error: Error) => {
        reject(error);
        setImmediate(() => {
          throw error;
        });
      });
    });
    return floor;
  }

  #onModule({ key, number }: ObjectLine): void {
    const known = this.#modules.get(key);
    if (known === undefined || known.value === number) return;
    known.value = number;
    known.generation++;
    void this.#write(known, number, known.generation);
  }

  async #write({ path, statusPath, body }: Known, value: number, generation: number): Promise<void> {
    if (!(await this.#api.apply(path, body.with(value)))) return;
    this.counters.writes++;
    await this.#api.mergePatch(statusPath, JSON.stringify({ status: { observedGeneration: generation } }));
  }
}

/** The workloads by their keys. Throws when the floor would apply something else than the catalog has applied. */
function knownOf(modules: readonly ModuleObject[], workloads: readonly KubeObject[], env: string): Map<string, Known> {
  const digests = new Map(
    workloads.map(({ metadata }) => [
      `${metadata.namespace}/${metadata.name}`,
      metadata.annotations?.[CATALOG_ANNOTATION.digest],
    ]),
  );
  return new Map(
    modules.map(({ metadata, spec, status }): [string, Known] => {
      const { namespace = '', name, uid = '', annotations = {}, generation = 0 } = metadata;
      const key = `${namespace}/${name}`;
      const release = status?.release;
      const value = Number(spec.deploy?.strategy?.rollingUpdate?.maxSurge);
      if (release === undefined) throw new Error(`${key} has no release in force`);
      const body = ApplyBody.of({ module: { namespace, name, uid, annotations, spec }, release, env });
      if (digests.get(key) !== body.digestOf(value)) throw new Error(`${key}: the catalog has applied something else`);
      const query = `fieldManager=${FIELD_MANAGER}&force=true`;
      const path = `${collectionPathOf(MODULE_DEPLOYMENTS, namespace)}/${name}?${query}`;
      const statusPath = `${collectionPathOf(MODULES, namespace)}/${name}/status?fieldManager=${FIELD_MANAGER}`;
      return [key, { path, statusPath, body, value, generation }];
    }),
  );
}

interface Listed<T> {
  readonly items: T[];
  readonly resourceVersion: string;
}

async function listed<T>(pool: Pool, path: string, headers: Readonly<Record<string, string>>): Promise<Listed<T>> {
  const items: T[] = [];
  let from = '';
  for (;;) {
    const query = new URLSearchParams({ limit: String(PAGE), ...(from === '' ? {} : { continue: from }) });
    const { statusCode, body } = await pool.request({ method: 'GET', path: `${path}?${query}`, headers });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`list of ${path}: ${statusCode} ${text}`);
    const page = JSON.parse(text) as { items: T[]; metadata: { resourceVersion: string; continue?: string } };
    items.push(...page.items);
    from = page.metadata.continue ?? '';
    if (from === '') return { items, resourceVersion: page.metadata.resourceVersion };
  }
}
