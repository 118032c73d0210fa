import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { serve } from '../../../src/server/serve.ts';
import { recordingLogger } from '../tunnels/mqtt/mqtt-world.ts';

const abort: AbortController[] = [];

afterEach(() => {
  for (const controller of abort.splice(0)) controller.abort();
});

function serving(signal?: AbortSignal) {
  const server = createServer((_request, response) => void response.end('ok'));
  const controller = new AbortController();
  abort.push(controller);
  const { lines, logger } = recordingLogger();
  const listening = Promise.withResolvers<void>();
  const options = { server, name: 'probes', port: 0, logger, onListening: listening.resolve };
  const ended = serve(options, signal ?? controller.signal);
  const url = async (): Promise<string> => {
    await listening.promise;
    return `http://127.0.0.1:${lines.find(({ msg }) => msg === 'listening')?.port}/`;
  };
  return { server, controller, lines, ended, url };
}

describe('a server', () => {
  it('goes on when the system refuses it a connection, and says so', async () => {
    const { server, controller, lines, ended, url } = serving();
    const address = await url();
    // As Node does when accept(2) fails.
    for (let times = 0; times < 2; times++) server.emit('error', new Error('accept ENOBUFS'));
    expect(await (await fetch(address)).text()).toBe('ok');
    expect(lines.filter(({ msg }) => msg === 'connection could not be accepted')).toHaveLength(2);
    controller.abort();
    await expect(ended).resolves.toBeUndefined();
  });

  it('ends at once where it was to end before it listened', async () => {
    const { server, ended } = serving(AbortSignal.abort());
    await expect(ended).resolves.toBeUndefined();
    expect(server.listening).toBe(false);
  });
});
