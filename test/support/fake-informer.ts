import type { KubeObject } from '../../src/kube/objects.ts';
import { InformerStore } from '../../src/kube/watch/informer.ts';
import {
  type CachedObject,
  type Informer,
  type InformerHandler,
  objectKey,
} from '../../src/kube/watch/informer-types.ts';
import { copyOf } from './copy.ts';
import type { FakeClock } from './fake-clock.ts';

export interface WatchEvent {
  readonly type: 'PUT' | 'DELETED';
  readonly object: KubeObject;
}

/** The real cache, fed by hand: with `isPaused` the watch is broken, and what happens meanwhile comes on `resume`. */
export class FakeInformer<T extends CachedObject> implements Informer<T> {
  readonly #store: InformerStore<T>;
  readonly #project: (raw: KubeObject) => T;
  #backlog: WatchEvent[] = [];
  /** UIDs of what is being deleted. */
  readonly #expected = new Set<string>();
  isPaused = false;
  synced = true;
  /** How long the watch has been silent. */
  eventAgeMs = 0;

  constructor(
    clock: FakeClock,
    project: (raw: KubeObject) => T,
    indexers: Readonly<Record<string, (object: T) => string | undefined>> = {},
  ) {
    this.#project = project;
    const onHandlerError = (error: unknown): never => {
      throw error;
    };
    this.#store = new InformerStore({ clock, indexers, onHandlerError, onSizeChange: () => {} });
  }

  deliver(event: WatchEvent): void {
    if (this.isPaused) {
      this.#backlog.push(event);
      return;
    }
    const object = this.#project(copyOf(event.object));
    const isExpected = this.#expected.delete(object.uid);
    if (event.type === 'DELETED') this.#store.remove(object);
    else if (!isExpected) this.#store.put(object);
  }

  /** The cluster went back to a state with these objects. Events that were held back are dropped. */
  async goBackTo(objects: readonly KubeObject[]): Promise<void> {
    this.isPaused = false;
    this.#backlog = [];
    this.#expected.clear();
    const projected = objects.map((object) => this.#project(copyOf(object)));
    await this.#store.replace(new Map(projected.map((object) => [objectKey(object), object])), true);
  }

  resume(): void {
    this.isPaused = false;
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const event of backlog) this.deliver(event);
  }

  addHandler(handler: InformerHandler<T>): void {
    this.#store.addHandler(handler);
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): readonly T[] {
    return this.#store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  hasSynced(): boolean {
    return this.synced;
  }

  whenSynced(): Promise<boolean> {
    return Promise.resolve(this.synced);
  }

  lastEventAgeMs(): number {
    return this.eventAgeMs;
  }

  /** How often it was told that the cluster went back. */
  rollbacks = 0;

  wasRolledBack(): void {
    this.rollbacks++;
  }

  expectDeletion({ uid }: Pick<T, 'uid'>): () => void {
    this.#expected.add(uid);
    return () => void this.#expected.delete(uid);
  }

  upsert(raw: KubeObject): void {
    this.#store.upsert(this.#project(copyOf(raw)));
  }
}
