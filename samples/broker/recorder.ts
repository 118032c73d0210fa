import type { AedesPublishPacket } from 'aedes';
import type { Clock } from '../../src/clock.ts';

export interface RecordedPublish {
  /** Undefined for a message of the broker itself. */
  clientId: string | undefined;
  topic: string;
  /** Wall clock, ms. */
  at: number;
  /** Absent when the recorder leaves payloads out. */
  payload?: string;
  retain: boolean;
  qos: number;
  /** Set when an interceptor dropped the message. */
  isDropped?: true;
}

export interface PublishFilter {
  clientId?: string;
  /** An MQTT topic filter: `+` and `#` work. */
  topic?: string;
  matches?: (message: RecordedPublish) => boolean;
}

interface Waiter {
  filter: PublishFilter;
  missing: number;
  resolve: () => void;
}

/** Keeps what clients published, in the order of arrival. */
export class PublishRecorder {
  enabled: boolean;
  readonly #withPayloads: boolean;
  readonly #clock: Clock;
  /** Emptied by `clear`. */
  #records: RecordedPublish[] = [];
  /** Emptied as waits end. */
  readonly #waiters = new Set<Waiter>();

  constructor(options: { enabled: boolean; payloads: boolean; clock: Clock }) {
    this.enabled = options.enabled;
    this.#withPayloads = options.payloads;
    this.#clock = options.clock;
  }

  describe(packet: AedesPublishPacket): RecordedPublish {
    return {
      clientId: (packet as { clientId?: string }).clientId,
      topic: packet.topic,
      at: this.#clock.wallTime().getTime(),
      ...(this.#withPayloads ? { payload: packet.payload.toString() } : {}),
      retain: packet.retain,
      qos: packet.qos,
    };
  }

  add(message: RecordedPublish): void {
    if (!this.enabled) return;
    this.#records.push(message);
    for (const waiter of this.#waiters) {
      if (!isMatch(message, waiter.filter)) continue;
      waiter.missing -= 1;
      if (waiter.missing === 0) waiter.resolve();
    }
  }

  records(filter: PublishFilter = {}): RecordedPublish[] {
    return this.#records.filter((message) => isMatch(message, filter));
  }

  count(filter: PublishFilter = {}): number {
    return this.records(filter).length;
  }

  clear(): void {
    this.#records = [];
  }

  /** Resolves with all matching records once there are `count`, those of before the call included. */
  async waitFor(
    filter: PublishFilter,
    options: { count?: number; timeoutMs?: number } = {},
  ): Promise<RecordedPublish[]> {
    const { count = 1, timeoutMs = 5_000 } = options;
    const missing = count - this.count(filter);
    if (missing > 0) await this.#wait(filter, missing, timeoutMs);
    return this.records(filter);
  }

  #wait(filter: PublishFilter, missing: number, timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { filter, missing, resolve: () => end(resolve) };
      const timer = this.#clock.setTimer(() => {
        const wanted = filter.topic ?? filter.clientId ?? 'the filter';
        end(() => reject(new Error(`${waiter.missing} messages that match ${wanted} missing after ${timeoutMs} ms`)));
      }, timeoutMs);
      const end = (settle: () => void): void => {
        timer.cancel();
        this.#waiters.delete(waiter);
        settle();
      };
      this.#waiters.add(waiter);
    });
  }
}

function isMatch(message: RecordedPublish, filter: PublishFilter): boolean {
  if (filter.clientId !== undefined && filter.clientId !== message.clientId) return false;
  if (filter.topic !== undefined && !isTopicMatch(message.topic, filter.topic)) return false;
  return filter.matches === undefined || filter.matches(message);
}

/** Tells whether a topic falls under an MQTT topic filter. */
export function isTopicMatch(topic: string, filter: string): boolean {
  const levels = topic.split('/');
  const wanted = filter.split('/');
  for (const [index, level] of wanted.entries()) {
    if (level === '#') return true;
    if (level !== '+' && level !== levels[index]) return false;
    if (index >= levels.length) return false;
  }
  return wanted.length === levels.length;
}
