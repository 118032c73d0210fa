import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PortTakenError, releasePort, reservePort, withFreshPort } from '../../../samples/control-plane/ports.ts';

const PORTS = new URL('../../../samples/control-plane/ports.ts', import.meta.url).href;

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

  it('gives more than a block has', async () => {
    const ports = await Promise.all(Array.from({ length: 250 }, reservePort));
    expect(new Set(ports).size).toBe(250);
    ports.forEach(releasePort);
  });

  it('gives no port that another process may give meanwhile', async () => {
    const ours = await reservePort();
    const theirs = await Promise.all(Array.from({ length: 4 }, portsOfAnotherProcess));
    const blocks = [ours, ...theirs.flat()].map((port) => Math.floor(port / 100));
    expect(theirs.flat()).toHaveLength(40);
    expect(new Set(blocks).size).toBe(5);
    releasePort(ours);
  });
});

/** Ten of one that lives until the test ends. */
async function portsOfAnotherProcess(): Promise<number[]> {
  const script = `
    const { reservePort } = await import(${JSON.stringify(PORTS)});
    console.log(JSON.stringify(await Promise.all(Array.from({ length: 10 }, reservePort))));
    process.stdin.resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'pipe' });
  onTestFinished(() => void child.kill());
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return JSON.parse(line);
}

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
