import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject, Watch, WatchEvent } from '../../../samples/control-plane/api-client.ts';
import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';

const RETRY_MS = 100;

export interface Seen {
  readonly object: KubeObject;
  /** Wall clock, ms: when this process heard of it. */
  readonly at: number;
  readonly isGone: boolean;
}

type Admin = Pick<ControlPlane['admin'], 'get' | 'watch'>;

/**
 * Hears of every version of the objects of one path, through restarts of the API server too: it goes on from the last
 * version that it saw, and where the server no longer knows that one it lists anew and tells the differences. What
 * vanished meanwhile is told with the time at which the watch was lost.
 */
export class ObjectRecorder {
  readonly #admin: Admin;
  readonly #path: string;
  readonly #onSeen: (seen: Seen) => void;
  /** The newest version of each object that exists, by UID. Emptied as objects go. */
  readonly #known = new Map<string, KubeObject>();
  #resourceVersion = '';
  #lostAt = 0;
  #watch: Watch | undefined;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(admin: Admin, path: string, onSeen: (seen: Seen) => void) {
    this.#admin = admin;
    this.#path = path;
    this.#onSeen = onSeen;
  }

  /** Resolves when the objects of now have been told and the watch stands. */
  static async start(admin: Admin, path: string, onSeen: (seen: Seen) => void): Promise<ObjectRecorder> {
    const recorder = new ObjectRecorder(admin, path, onSeen);
    await recorder.#list();
    await recorder.#open();
    recorder.#running = recorder.#run();
    return recorder;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#watch?.stop();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#watch?.ended.catch(() => {});
      this.#lostAt = Date.now();
      if (this.#isStopped) return;
      await this.#resume().catch(() => delay(RETRY_MS));
    }
  }

  /** Throws while the API server is away. */
  async #resume(): Promise<void> {
    if (this.#resourceVersion === '') await this.#list();
    await this.#open();
  }

  async #list(): Promise<void> {
    const { metadata, items } = await this.#admin.get(this.#path);
    const listed = new Map<string, KubeObject>(items.map((item: KubeObject) => [item.metadata.uid, item]));
    for (const [uid, object] of this.#known) {
      if (listed.has(uid)) continue;
      this.#known.delete(uid);
      this.#onSeen({ object, at: this.#lostAt, isGone: true });
    }
    for (const object of listed.values()) this.#tell('MODIFIED', object);
    this.#resourceVersion = metadata.resourceVersion;
  }

  async #open(): Promise<void> {
    this.#watch = undefined;
    const query = `allowWatchBookmarks=true&resourceVersion=${this.#resourceVersion}`;
    const path = `${this.#path}${this.#path.includes('?') ? '&' : '?'}${query}`;
    try {
      this.#watch = await this.#admin.watch(path, (event) => this.#take(event));
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode === 410) this.#resourceVersion = '';
      throw error;
    }
    if (this.#isStopped) this.#watch.stop();
  }

  #take({ type, object }: WatchEvent): void {
    if (type === 'ERROR') {
      this.#resourceVersion = '';
      this.#watch?.stop();
      return;
    }
    this.#resourceVersion = object.metadata.resourceVersion;
    if (type !== 'BOOKMARK') this.#tell(type, object);
  }

  #tell(type: string, object: KubeObject): void {
    const { uid, resourceVersion } = object.metadata;
    if (type === 'DELETED') this.#known.delete(uid);
    else if (this.#known.get(uid)?.metadata.resourceVersion === resourceVersion) return;
    else this.#known.set(uid, object);
    this.#onSeen({ object, at: Date.now(), isGone: type === 'DELETED' });
  }
}
