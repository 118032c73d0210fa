import type { CachedObject, Informer } from '../../../kube/watch/informer-types.ts';

/** What an object uses: names of ModuleConfigs of its namespace, each with the versions that it may need again. */
export type UsedConfigs = ReadonlyMap<string, ReadonlySet<string>>;

/** Objects of one kind that use ModuleConfigs. */
export interface UserKind<T extends CachedObject> {
  readonly informer: Informer<T>;
  /** Name for people: that of a Module, of a Pod. */
  readonly kind: string;
  readonly configsOf: (object: T) => UsedConfigs;
}

/** An object that uses a ModuleConfig. */
export interface ConfigUser {
  readonly kind: string;
  readonly name: string;
  readonly versions: ReadonlySet<string>;
}

const NOBODY: ReadonlyMap<string, ConfigUser> = new Map();

/** Who uses which ModuleConfig, by its key `namespace/name`: an index over the caches, kept by their events. */
export class ConfigUses {
  /** Users by the key of their ModuleConfig, then by their kind and UID. */
  readonly #users = new Map<string, Map<string, ConfigUser>>();
  readonly #listeners: ((key: string) => void)[] = [];

  /** Reports each ModuleConfig whose users or versions in use have changed. */
  onChange(listener: (key: string) => void): void {
    this.#listeners.push(listener);
  }

  watch<T extends CachedObject>({ informer, kind, configsOf }: UserKind<T>): this {
    informer.addHandler({
      onAdd: (object) => this.#add(kind, object, configsOf(object)),
      onUpdate: (old, object) => {
        const [before, after] = [configsOf(old), configsOf(object)];
        // One whose UID is new has the name of another one.
        if (old.uid === object.uid && isSameUse(before, after)) return;
        this.#remove(kind, old, before);
        this.#add(kind, object, after);
      },
      onDelete: (object) => this.#remove(kind, object, configsOf(object)),
    });
    return this;
  }

  /** Sorted by kind and name. */
  of(key: string): ConfigUser[] {
    return [...(this.#users.get(key) ?? NOBODY).values()].sort(
      (a, b) => compare(a.kind, b.kind) || compare(a.name, b.name),
    );
  }

  /** Versions that somebody may need again. */
  versionsOf(key: string): Set<string> {
    return new Set([...(this.#users.get(key) ?? NOBODY).values()].flatMap(({ versions }) => [...versions]));
  }

  #add(kind: string, { namespace, name, uid }: CachedObject, used: UsedConfigs): void {
    for (const [config, versions] of used) {
      const key = `${namespace}/${config}`;
      const users = this.#users.get(key) ?? new Map<string, ConfigUser>();
      this.#users.set(key, users.set(`${kind} ${uid}`, { kind, name, versions }));
      this.#report(key);
    }
  }

  #remove(kind: string, { namespace, uid }: CachedObject, used: UsedConfigs): void {
    for (const config of used.keys()) {
      const key = `${namespace}/${config}`;
      const users = this.#users.get(key);
      users?.delete(`${kind} ${uid}`);
      if (users?.size === 0) this.#users.delete(key);
      this.#report(key);
    }
  }

  #report(key: string): void {
    for (const listener of this.#listeners) listener(key);
  }
}

function isSameUse(a: UsedConfigs, b: UsedConfigs): boolean {
  return a.size === b.size && [...a].every(([name, versions]) => isSameSet(versions, b.get(name)));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string> | undefined): boolean {
  return a.size === b?.size && [...a].every((one) => b.has(one));
}
