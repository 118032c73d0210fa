import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { PortTakenError, releasePort, reservePort, withFreshPort } from '../../../samples/control-plane/ports.ts';

describe('reservePort', () => {
  it('gives different ports that can be bound, below the ephemeral ones', async () => {
    const ports = await Promise.all(Array.from({ length: 50 }, reservePort));
    expect(new Set(ports).size).toBe(50);
    expect(Math.max(...ports)).toBeLessThan(32_768);
    const server = createServer().listen(ports[0], '127.0.0.1');
    await once(server, 'listening');
    server.close();
    ports.forEach(releasePort);
  });
});

describe('withFreshPort', () => {
  it('tries another port when one was taken meanwhile', async () => {
    const tried: number[] = [];
    const result = await withFreshPort(async (port) => {
      tried.push(port);
      if (tried.length < 3) throw new PortTakenError();
      return port;
    });
    expect(new Set(tried).size).toBe(3);
    expect(result).toBe(tried[2]);
  });

  it('passes any other error on at once', async () => {
    let attempts = 0;
    const failing = withFreshPort(async () => {
      attempts++;
      throw new Error('no such flag');
    });
    await expect(failing).rejects.toThrow('no such flag');
    expect(attempts).toBe(1);
  });

  it('gives up in the end', async () => {
    const failing = withFreshPort(async () => {
      throw new PortTakenError('taken');
    });
    await expect(failing).rejects.toThrow('taken');
  });
});
