import type { ControlPlane } from '../../../samples/control-plane/control-plane.ts';
import { ObjectRecorder, type Seen } from '../../support/cluster/object-recorder.ts';
import { isReady, waitingReason } from '../../support/observe.ts';

/** When each Pod that a selector fits became Ready, as a watch of our own has told. */
export class ReadyWatch {
  /** Wall clock, ms, by name. */
  readonly #readyAt = new Map<string, number>();
  /** Why they are not Ready, by name. Emptied as they become so. */
  readonly #waiting = new Map<string, string>();
  #onReady: () => void = () => {};
  #recorder: ObjectRecorder | undefined;

  static async open(admin: ControlPlane['admin'], selector: string): Promise<ReadyWatch> {
    const watch = new ReadyWatch();
    const path = `/api/v1/namespaces/default/pods?labelSelector=${encodeURIComponent(selector)}`;
    watch.#recorder = await ObjectRecorder.start(admin, path, (seen) => watch.#take(seen));
    return watch;
  }

  /** When the last of so many was Ready, wall clock in ms. */
  until(count: number, timeoutMs: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const some = [...this.#waiting].slice(0, 3).map(([name, reason]) => `${name} ${reason}`);
        const words = `${this.#readyAt.size} of ${count} Pods are Ready after ${timeoutMs / 1000} s`;
        reject(new Error(`${words}; ${some.join(', ')}`));
      }, timeoutMs);
      this.#onReady = () => {
        if (this.#readyAt.size < count) return;
        clearTimeout(timer);
        resolve(Math.max(...this.#readyAt.values()));
      };
      this.#onReady();
    });
  }

  async close(): Promise<void> {
    await this.#recorder?.stop();
  }

  #take({ object, at }: Seen): void {
    const { name } = object.metadata;
    if (this.#readyAt.has(name)) return;
    this.#waiting.set(name, waitingReason(object) ?? object.status?.phase);
    if (!isReady(object)) return;
    this.#waiting.delete(name);
    this.#readyAt.set(name, at);
    this.#onReady();
  }
}
