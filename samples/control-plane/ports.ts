import { createServer, type Server } from 'node:net';

/** Below the ephemeral ports of Linux (32768) and macOS (49152), so that no outgoing connection takes one meanwhile. */
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;
const MAX_ATTEMPTS = 20;
/**
 * A process listens at the first port of each block that it gives ports of, until it ends: a port may be given out
 * seconds before a program binds it, and no other process gives it out meanwhile.
 */
const BLOCK_SIZE = 100;
const BLOCK_COUNT = (LAST_PORT + 1 - FIRST_PORT) / BLOCK_SIZE;

/** Thrown by a server that lost its port between our look and its bind. */
export class PortTakenError extends Error {}

/** Of the blocks of this process, not given out; the one that was given back last comes last. */
const available = new Set<number>();
let claiming: Promise<void> | undefined;

/** A port of 127.0.0.1 that was free a moment ago; give it back with `releasePort`. */
export async function reservePort(): Promise<number> {
  for (;;) {
    const [port] = available;
    if (port === undefined) {
      claiming ??= claimBlock().finally(() => {
        claiming = undefined;
      });
      await claiming;
      continue;
    }
    available.delete(port);
    if (await isFree(port)) return port;
  }
}

async function claimBlock(): Promise<void> {
  const start = Math.floor(Math.random() * BLOCK_COUNT);
  for (let index = 0; index < BLOCK_COUNT; index++) {
    const block = FIRST_PORT + ((start + index) % BLOCK_COUNT) * BLOCK_SIZE;
    const sign = await listen(block);
    if (sign === undefined) continue;
    sign.unref();
    for (let offset = 1; offset < BLOCK_SIZE; offset++) available.add(block + offset);
    return;
  }
  throw new Error(`no free ports found between ${FIRST_PORT} and ${LAST_PORT}`);
}

/** May be called again. */
export function releasePort(port: number): void {
  available.add(port);
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

async function isFree(port: number): Promise<boolean> {
  const server = await listen(port);
  if (server === undefined) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/** undefined: somebody else does. */
function listen(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(server));
  });
}
