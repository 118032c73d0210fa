import { randomBytes } from 'node:crypto';
import { type IClientOptions, UniqueMessageIdProvider } from 'mqtt';
import type { Clock, Timer } from '../../src/clock.ts';

export const CONNECT_TIMEOUT_MS = 10_000;
/**
 * mqtt.js pings when it has got no acknowledgement and no answer to a ping for one such period, and gives up after one
 * and a half: 7.5 s after the last sign of life at most, less than it takes until another replica is to take over (10
 * s). The broker closes the link after the same time.
 */
const KEEPALIVE_SECONDS = 5;
const RANDOM_BYTES = 12;

export interface MqttClientOptions {
  /** Start of the client id. */
  readonly clientId: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly clock: Clock;
}

/** The options of mqtt.js for one connection, which is never repeated. */
export function clientOptionsOf(options: MqttClientOptions): IClientOptions {
  const { clientId, username, password, clock } = options;
  return {
    clientId: clientIdOf(clientId),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    // 3.1.1, the version of the bases: every broker has it, and a fallback from 5 would hardly ever be tested.
    protocolVersion: 4,
    clean: true,
    keepalive: KEEPALIVE_SECONDS,
    timerVariant: intervalsOf(clock),
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    // A buffer made beforehand for each of 65,536 numbers: 8 MiB.
    writeCache: false,
    messageIdProvider: new UniqueMessageIdProvider(),
    // Several lines for each message, which nobody reads.
    log: () => {},
  };
}

/**
 * A client id that nobody guesses: at most brokers, whoever connects with the id of another client throws that one out.
 * Each connection has one of its own, so that an id that has become known is of no use at the next connection.
 */
function clientIdOf(name: string): string {
  return `${name}@@@${randomBytes(RANDOM_BYTES).toString('hex')}`;
}

type Intervals = Exclude<NonNullable<IClientOptions['timerVariant']>, string>;

/** The keep-alive intervals of mqtt.js, on the local clock. */
function intervalsOf(clock: Clock): Intervals {
  /** Emptied by `clear`, which mqtt.js calls for each at the latest when its connection closes. */
  const running = new Map<number, Timer>();
  let lastId = 0;
  const set = (callback: () => void, intervalMs: number): number => {
    const id = ++lastId;
    const arm = (): Timer =>
      clock.setTimer(() => {
        running.set(id, arm());
        callback();
      }, intervalMs);
    running.set(id, arm());
    return id;
  };
  const clear = (id: number): void => {
    running.get(id)?.cancel();
    running.delete(id);
  };
  return { set, clear } as Intervals;
}
