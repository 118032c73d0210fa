import { setTimeout as delay } from 'node:timers/promises';
import { type ApiClient, ApiError, type KubeObject, type Watch, type WatchEvent } from './api-client.ts';

/** Before a lost watch is opened again: no hammering on an API server that is down. */
const REOPEN_AFTER_MS = 500;

/** All objects of one path, kept up to date by a list and a watch from there on. */
export class Mirror<T> {
  readonly #client: ApiClient;
  readonly #path: string;
  readonly #viewOf: (object: KubeObject) => T;
  readonly #onChange: () => void;
  readonly #stopping = new AbortController();
  /** Emptied by deletions, and anew with each list. */
  #rows = new Map<string, T>();
  #watch: Watch | undefined;
  #following: Promise<void> = Promise.resolve();

  constructor(options: {
    client: ApiClient;
    path: string;
    viewOf: (object: KubeObject) => T;
    onChange: () => void;
  }) {
    this.#client = options.client;
    this.#path = options.path;
    this.#viewOf = options.viewOf;
    this.#onChange = options.onChange;
  }

  rows(): T[] {
    return [...this.#rows.values()];
  }

  /** Resolves when the first list is there and the watch is open. */
  async start(): Promise<void> {
    this.#following = this.#follow(await this.#open());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watch?.stop();
    await this.#following;
  }

  async #open(): Promise<Watch> {
    const list = await this.#client.get(this.#path);
    this.#rows = new Map(list.items.map((item: KubeObject) => [keyOf(item), this.#viewOf(item)]));
    this.#onChange();
    const separator = this.#path.includes('?') ? '&' : '?';
    const from = `${this.#path}${separator}resourceVersion=${list.metadata.resourceVersion}`;
    this.#watch = await this.#client.watch(from, (event) => this.#take(event));
    return this.#watch;
  }

  async #follow(first: Watch): Promise<void> {
    const { signal } = this.#stopping;
    for (let watch: Watch | undefined = first; !signal.aborted; ) {
      await watch?.ended.catch(() => {}); // the API server ends each watch some time
      await delay(REOPEN_AFTER_MS, undefined, { signal }).catch(() => {});
      if (!signal.aborted) watch = await this.#open().catch(() => undefined);
    }
    this.#watch?.stop(); // one that was opened while we stopped
  }

  #take({ type, object }: WatchEvent): void {
    if (type === 'ERROR') throw new ApiError(`WATCH ${this.#path}`, object.code, JSON.stringify(object));
    if (type === 'BOOKMARK') return;
    if (type === 'DELETED') this.#rows.delete(keyOf(object));
    else this.#rows.set(keyOf(object), this.#viewOf(object));
    this.#onChange();
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
