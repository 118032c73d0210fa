import { createServer } from 'node:net';

/** Below the ephemeral ports of Linux (32768) and macOS (49152), so that no outgoing connection takes one meanwhile. */
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;
const MAX_ATTEMPTS = 20;

/** Thrown by a server that lost its port between our look and its bind. */
export class PortTakenError extends Error {}

/** Given out by this process: two clusters that start side by side never get the same one. */
const givenOut = new Set<number>();

/** A port of 127.0.0.1 that was free a moment ago; give it back with `releasePort`. */
export async function reservePort(): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS * 5; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    if (givenOut.has(port)) continue;
    givenOut.add(port);
    if (await isFree(port)) return port;
    givenOut.delete(port);
  }
  throw new Error(`no free port found between ${FIRST_PORT} and ${LAST_PORT}`);
}

export function releasePort(port: number): void {
  givenOut.delete(port);
}

/**
 * Runs `attempt` with a free port, and again with another one when it throws PortTakenError:
 * nobody can hold a port for a program that binds it itself, so the look and the bind are a race that may be lost.
 */
export async function withFreshPort<T>(attempt: (port: number) => Promise<T>, reserve = reservePort): Promise<T> {
  for (let tries = 1; ; tries++) {
    const port = await reserve();
    try {
      return await attempt(port);
    } catch (error) {
      releasePort(port);
      if (!(error instanceof PortTakenError) || tries === MAX_ATTEMPTS) throw error;
    }
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
