import type { ExportWorld } from './export-world.ts';
import type { BenchPod, BenchService } from './objects.ts';

interface Expectation {
  readonly isReady: boolean;
  answeredAt?: number;
  seenAt?: number;
}

/** A watch of Pods of the bench's own: what the API server and the machine take before any replica can know. */
export class PodWatch {
  /** By `namespace/name`: the newest change of a Pod. */
  readonly #expected = new Map<string, Expectation>();
  readonly #all: Expectation[] = [];
  #stop: () => void = () => {};

  static async open({ world: { admin } }: ExportWorld): Promise<PodWatch> {
    const watch = new PodWatch();
    const { metadata } = await admin.get('/api/v1/pods?limit=1');
    const path = `/api/v1/pods?resourceVersion=${metadata.resourceVersion}`;
    const { stop } = await admin.watch(path, ({ object: { metadata: of, status } }) => {
      const isReady = status?.conditions?.some(
        (one: { type: string; status: string }) => one.type === 'Ready' && one.status === 'True',
      );
      const expected = watch.#expected.get(`${of.namespace}/${of.name}`);
      if (expected && expected.isReady === isReady) expected.seenAt ??= performance.now();
    });
    watch.#stop = stop;
    return watch;
  }

  async expect({ namespace }: BenchService, { name }: BenchPod, isReady: boolean, act: () => Promise<void>) {
    const expectation: Expectation = { isReady };
    this.#expected.set(`${namespace}/${name}`, expectation);
    this.#all.push(expectation);
    await act();
    expectation.answeredAt = performance.now();
  }

  /** Sorted, s; an event that was faster than the answer is 0. */
  latencies(): number[] {
    const all = this.#all.flatMap(({ seenAt, answeredAt = Number.NaN }) =>
      seenAt === undefined ? [] : [Math.max(0, seenAt - answeredAt) / 1000],
    );
    return all.sort((a, b) => a - b);
  }

  close(): void {
    this.#stop();
  }
}
