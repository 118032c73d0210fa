import type { Clock, Timer } from '../../src/clock.ts';
import { ControllerError } from '../../src/errors.ts';

export interface Message {
  readonly topic: string;
  readonly payload: string;
  /** Asked when it is about to be written. Default: yes. */
  readonly mayLeave?: () => boolean;
}

export interface PublishWindowOptions {
  readonly clock: Clock;
  /** How many messages may wait for the broker's acknowledgement. */
  readonly size: number;
  readonly timeoutMs: number;
  /** Writes one message; `acknowledged` is called once at most. */
  readonly send: (message: Message, acknowledged: (error?: Error) => void) => void;
  /** A message found no room for a whole `timeoutMs`: the broker has stopped to acknowledge. */
  readonly onStuck: () => void;
}

interface Publish {
  readonly message: Message;
  readonly settle: (error?: ControllerError) => void;
  readonly timer: Timer;
}

/**
 * The unacknowledged messages of one connection: MQTT has no other flow control. What exceeds the size waits in
 * order. A message out of time keeps its place, for its acknowledgement may still come and its id is in use.
 */
export class PublishWindow {
  readonly #options: PublishWindowOptions;
  /** In order; emptied by acknowledgements, timeouts and `close`. */
  readonly #waiting = new Set<Publish>();
  readonly #inFlight = new Set<Publish>();
  #isClosed = false;

  constructor(options: PublishWindowOptions) {
    this.#options = options;
  }

  /** What was written and may be on its way, however long ago. */
  get unacknowledgedCount(): number {
    return this.#inFlight.size;
  }

  /** Resolves when the broker has acknowledged; rejects within `timeoutMs` otherwise. */
  publish(message: Message): Promise<void> {
    if (this.#isClosed) return Promise.reject(notConnected());
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.setTimer(() => this.#onTimeout(publish), this.#options.timeoutMs);
      const settle = (error?: ControllerError): void => {
        timer.cancel();
        if (error) reject(error);
        else resolve();
      };
      const publish: Publish = { message, settle, timer };
      this.#waiting.add(publish);
      this.#fill();
    });
  }

  /** The connection is gone. What was written may have arrived, the rest has not. */
  close(): void {
    this.#isClosed = true;
    const waiting = [...this.#waiting];
    const inFlight = [...this.#inFlight];
    this.#waiting.clear();
    this.#inFlight.clear();
    for (const publish of inFlight) publish.settle(sendFailed('the link broke before the broker acknowledged'));
    for (const publish of waiting) publish.settle(notConnected());
  }

  #fill(): void {
    for (const publish of this.#waiting) {
      if (this.#inFlight.size >= this.#options.size) return;
      this.#waiting.delete(publish);
      if (publish.message.mayLeave?.() ?? true) this.#write(publish);
      else publish.settle(notAllowed());
    }
  }

  #write(publish: Publish): void {
    this.#inFlight.add(publish);
    this.#options.send(publish.message, (error) => this.#onAcknowledged(publish, error));
  }

  #onAcknowledged(publish: Publish, error: Error | undefined): void {
    if (!this.#inFlight.delete(publish)) return;
    publish.settle(error && sendFailed('the broker refused it', error));
    this.#fill();
  }

  #onTimeout(publish: Publish): void {
    publish.settle(sendFailed(`the broker did not acknowledge within ${this.#options.timeoutMs} ms`));
    if (this.#waiting.delete(publish)) this.#options.onStuck();
  }
}

export function notConnected(): ControllerError {
  return new ControllerError('Tunnel.NotConnected', 'the link to the broker is down');
}

function notAllowed(): ControllerError {
  return new ControllerError('Tunnel.NotConnected', 'command not sent: another replica may lead the base');
}

function sendFailed(reason: string, cause?: Error): ControllerError {
  return new ControllerError('Tunnel.SendFailed', `command not sent for sure: ${reason}`, { cause });
}
