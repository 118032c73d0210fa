import type { BaseInfo } from '../../../../src/tunnel/base.ts';
import { Topics } from '../../../../tunnels/mqtt/topics.ts';
import { ApiWriter } from './api-writer.ts';
import { BrokerLink, filtersOf } from './broker-link.ts';
import type { FloorCounters, FloorOptions } from './floor-process.ts';
import { LeaseSweep, TICK_MS } from './lease-sweep.ts';
import { installAnswerOf, newBaseOf } from './messages.ts';
import * as objects from './objects.ts';
import type { PodEvent } from './pod-line.ts';
import { type FloorPod, keyOf, PodTable } from './pod-table.ts';
import { PodWatch } from './pod-watch.ts';

const CLIENT_ID = `floor-${process.pid}`;

/** The whole controller: from a heartbeat to a Node, from a Pod to an install, from its answer to a status. */
export class Floor {
  readonly counters: FloorCounters = { nodes: 0, installs: 0, patches: 0, deletes: 0, refused: 0, failed: 0 };
  readonly #env: string;
  readonly #topics: Topics;
  readonly #api: ApiWriter;
  readonly #sweep = new LeaseSweep(performance.now());
  readonly #pods = new PodTable();
  /** By identity. Never emptied: a base that was there once stays for as long as the floor. */
  readonly #bases = new Map<string, BaseInfo>();
  #link: BrokerLink | undefined;

  private constructor(options: FloorOptions) {
    this.#env = options.env;
    this.#topics = new Topics(options.env, CLIENT_ID);
    this.#api = new ApiWriter(options, this.counters);
  }

  /** Resolves when the watch stands and the broker has granted the topics. */
  static async start(options: FloorOptions): Promise<Floor> {
    const floor = new Floor(options);
    floor.#link = await BrokerLink.open(options.brokerUrl, {
      clientId: CLIENT_ID,
      // Of what a base says, that it is there, and how an install ended.
      filters: filtersOf(floor.#topics, ['heart', 'bizOperation']),
      onMessage: (topic, payload) => floor.#onMessage(topic, payload),
    });
    await PodWatch.start(options, {
      onEvent: (event) => floor.#onPod(event),
      onListed: (uids) => floor.#pods.keepOnly(uids),
    });
    setInterval(() => floor.#renewLeases(), TICK_MS);
    return floor;
  }

  #onMessage(topic: string, payload: Buffer): void {
    const found = this.#topics.parse(topic);
    if (found?.type === 'heart') this.#onHeart(found.identity, payload);
    else if (found?.type === 'bizOperation') this.#onAnswer(found.identity, payload);
  }

  #onHeart(identity: string, payload: Buffer): void {
    if (this.#bases.has(identity)) return;
    const base = newBaseOf(identity, payload);
    if (base === undefined) return;
    this.#bases.set(identity, base);
    void this.#createNode(base);
    void this.#createLease(base);
    for (const pod of this.#pods.release(identity)) this.#advance(pod);
  }

  async #createNode(base: BaseInfo): Promise<void> {
    const node = objects.nodeOf(base, this.#env, new Date(), this.#bases.size);
    if (await this.#api.create('/api/v1/nodes', node)) this.counters.nodes++;
  }

  async #createLease({ identity }: BaseInfo): Promise<void> {
    await this.#api.create(objects.LEASES, objects.leaseOf(identity, this.#env, new Date()));
    // Not before: a renewal that overtakes it would find nothing.
    this.#sweep.add(objects.leasePathOf(identity));
  }

  #renewLeases(): void {
    const due = this.#sweep.due(performance.now());
    if (due.length === 0) return;
    const renewal = objects.renewalOf(new Date());
    for (const path of due) void this.#api.mergePatch(path, renewal);
  }

  #onPod({ uid, isDeleting, read }: PodEvent): void {
    const known = this.#pods.get(uid);
    if (read === undefined) {
      this.#pods.remove(uid);
    } else if (known === undefined) {
      this.#onNewPod(read());
    } else if (isDeleting && this.#pods.startDeleting(known)) {
      this.#advance(known);
    }
  }

  #onNewPod(pod: FloorPod | undefined): void {
    if (pod === undefined) return;
    this.#pods.add(pod);
    this.#advance(pod);
  }

  #advance(pod: FloorPod): void {
    if (!this.#bases.has(pod.identity)) this.#pods.hold(pod);
    else if (pod.isDeleting) void this.#delete(pod);
    else this.#install(pod);
  }

  #install(pod: FloorPod): void {
    this.#pods.expect(pod);
    const topic = this.#topics.command(pod.identity, 'installBiz');
    for (const { payload } of pod.modules) {
      this.counters.installs++;
      this.#link?.publish(topic, payload);
    }
  }

  #onAnswer(identity: string, payload: Buffer): void {
    const answer = installAnswerOf(payload);
    const base = this.#bases.get(identity);
    if (answer === undefined || base === undefined) return;
    if (!answer.isInstalled) {
      this.counters.failed++;
      return;
    }
    for (const pod of this.#pods.settle(keyOf(identity, answer))) void this.#patchStatus(pod, base);
  }

  async #patchStatus(pod: FloorPod, { ip }: BaseInfo): Promise<void> {
    const patch = objects.statusPatchOf(pod, ip, new Date());
    if (await this.#api.strategicPatch(`${pod.path}/status`, patch)) this.counters.patches++;
  }

  async #delete(pod: FloorPod): Promise<void> {
    if (await this.#api.delete(pod.path, objects.deletionOf(pod.uid))) this.counters.deletes++;
  }
}
