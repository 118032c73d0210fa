import { createKubeLanes, type KubeLanes } from '../../../../src/kube/transport/kube-lanes.ts';
import { SharedInformer, type SharedInformerOptions } from '../../../../src/kube/watch/informer.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { type CachedPod, capturedLogger, type LogLine, listEnd, projectPod, staticAccess } from './rig.ts';
import { type Exchange, ScriptedServer } from './scripted-server.ts';
import { until } from './until.ts';

/** An informer of pods against a scripted server; what handlers saw is in `seen`, as `add ns/a@5`. */
export class InformerRig {
  readonly clock = new FakeClock();
  readonly metrics = createMetrics();
  readonly server: ScriptedServer;
  readonly informer: SharedInformer<CachedPod>;
  readonly seen: string[] = [];
  readonly logs: LogLine[];
  readonly #lanes: KubeLanes;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;

  private constructor(server: ScriptedServer, options: Partial<SharedInformerOptions<CachedPod>>) {
    const { clock, metrics } = this;
    const { logger, lines } = capturedLogger();
    this.logs = lines;
    this.server = server;
    this.#lanes = createKubeLanes({ access: staticAccess(server.url), clock, metrics });
    this.informer = new SharedInformer<CachedPod>({
      kind: 'pods',
      path: '/api/v1/pods',
      project: projectPod,
      indexers: { node: (object) => object.nodeName },
      lane: this.#lanes.watches,
      clock,
      logger,
      metrics,
      random: () => 1,
      ...options,
    });
    this.informer.addHandler({
      onAdd: (object) => this.seen.push(`add ${label(object)}`),
      onUpdate: (old, object) => this.seen.push(`update ${label(old)} ${label(object)}`),
      onDelete: (last) => this.seen.push(`delete ${label(last)}`),
    });
    this.#running = this.informer.run(this.#abort.signal);
  }

  static async start(options: Partial<SharedInformerOptions<CachedPod>> = {}): Promise<InformerRig> {
    return new InformerRig(await ScriptedServer.start(), options);
  }

  /** Answers the first watch with a whole list and waits until it is taken. */
  async sync(resourceVersion: number, ...events: unknown[]): Promise<Exchange> {
    const watch = await this.server.next();
    watch.send(...events, listEnd(resourceVersion));
    await this.informer.whenSynced();
    return watch;
  }

  /** Waits until handlers have seen `count` more than `this.seen` had when `take` was last called. */
  async take(count: number): Promise<string[]> {
    await until(() => this.seen.length >= count, `${count} events, have: ${this.seen.join(', ')}`);
    return this.seen.splice(0);
  }

  /** Waits for the end of the running watch, and gives the delay that the informer now waits for. */
  async interruption(): Promise<number> {
    const isOne = ({ msg }: LogLine): boolean => msg === 'watch interrupted';
    const at = await until(() => this.logs.some(isOne) && { index: this.logs.findIndex(isOne) }, 'an interruption');
    return this.logs.splice(at.index, 1)[0]?.delayMs as number;
  }

  /** Waits until the headers of the running watch have come: its deadline for them is gone then. */
  async opened(): Promise<void> {
    const ageGauge = 1;
    const inactivityGuard = 1;
    await until(() => this.clock.pending === ageGauge + inactivityGuard, 'the headers');
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
    await this.#lanes.close();
    await this.server.close();
  }

  /** The sum of a counter over its labels. */
  async total(counter: 'informerRelists' | 'informerParseErrors' | 'informerHandlerErrors'): Promise<number> {
    const { values } = await this.metrics[counter].get();
    return values.reduce((sum, { value }) => sum + value, 0);
  }
}

function label(object: CachedPod): string {
  return `${object.name}@${object.resourceVersion}`;
}
