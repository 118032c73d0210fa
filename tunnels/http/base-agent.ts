import { Agent, type ClientRequest } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../src/clock.ts';

/**
 * How long a connection is kept for the next command. Shorter than servers usually keep theirs (5 s), so that this
 * side closes: a command on a connection that the base closes just then would be lost.
 */
const IDLE_MS = 4_000;

/** Connections to bases. A command often follows another, and a base at rest holds none. */
export class BaseAgent extends Agent {
  readonly #clock: Clock;
  /** What ends the waiting of a socket for its next use; emptied by that use and by the end of the socket. */
  readonly #idle = new Map<Duplex, () => void>();
  #isDestroyed = false;

  constructor(clock: Clock) {
    super({ keepAlive: true });
    this.#clock = clock;
  }

  /** Called by Node when a request has done with its socket; false has it destroyed. */
  override keepSocketAlive(socket: Duplex): boolean {
    // Of a request that was given up before it had its connection.
    if (socket instanceof Socket && socket.connecting) return false;
    // Declared void, yet false means that the base wants it closed.
    const isKept = super.keepSocketAlive(socket) as unknown as boolean;
    if (!isKept || this.#isDestroyed) return false;
    const timer = this.#clock.setTimer(() => socket.destroy(), IDLE_MS);
    const endIdle = (): void => {
      timer.cancel();
      socket.off('close', endIdle);
      this.#idle.delete(socket);
    };
    socket.once('close', endIdle);
    this.#idle.set(socket, endIdle);
    return true;
  }

  /** Called by Node when a request takes a kept socket. */
  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    this.#idle.get(socket)?.();
    super.reuseSocket(socket, request);
  }

  /** Destroys the agent for good, unlike Node's own: an answer that is whole just then leaves no connection behind. */
  override destroy(): void {
    this.#isDestroyed = true;
    for (const endIdle of [...this.#idle.values()]) endIdle();
    super.destroy();
  }
}
