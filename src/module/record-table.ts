import { type ModuleId, type ModuleKey, moduleKeyOf } from '../tunnel/module.ts';
import type { ModuleRecord } from './module-record.ts';

/** The records of one base, to be found by `name:version` and by name. */
export class RecordTable {
  readonly #byKey = new Map<ModuleKey, ModuleRecord>();
  readonly #keysByName = new Map<string, Set<ModuleKey>>();
  readonly #inFlight = new Set<ModuleKey>();

  get size(): number {
    return this.#byKey.size;
  }

  get(key: ModuleKey): ModuleRecord | undefined {
    return this.#byKey.get(key);
  }

  values(): IterableIterator<ModuleRecord> {
    return this.#byKey.values();
  }

  set(record: ModuleRecord): void {
    const key = moduleKeyOf(record.id);
    this.#byKey.set(key, record);
    if (record.inFlight) this.#inFlight.add(key);
    else this.#inFlight.delete(key);
    const keys = this.#keysByName.get(record.id.name) ?? new Set();
    this.#keysByName.set(record.id.name, keys.add(key));
  }

  forget(isForgotten: (key: ModuleKey, record: ModuleRecord) => boolean): void {
    for (const [key, record] of this.#byKey) if (isForgotten(key, record)) this.#delete(key, record);
  }

  /** With a command under way. */
  inFlight(): ModuleRecord[] {
    return [...this.#inFlight].flatMap((key) => this.#byKey.get(key) ?? []);
  }

  get inFlightCount(): number {
    return this.#inFlight.size;
  }

  /** The other versions of the name. */
  siblingsOf(id: ModuleId): ModuleRecord[] {
    const siblings: ModuleRecord[] = [];
    for (const key of this.#keysByName.get(id.name) ?? []) {
      const record = this.#byKey.get(key);
      if (record && record.id.version !== id.version) siblings.push(record);
    }
    return siblings;
  }

  #delete(key: ModuleKey, { id }: ModuleRecord): void {
    this.#byKey.delete(key);
    this.#inFlight.delete(key);
    const keys = this.#keysByName.get(id.name);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysByName.delete(id.name);
  }
}
