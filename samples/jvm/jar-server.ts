import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Serves the files of one directory over http on loopback, as a store of jars would. */
export interface JarServer {
  /** The URL of a file, whether it is there or not. */
  urlOf(file: string): string;
  stop(): Promise<void>;
}

export async function startJarServer(directory: string): Promise<JarServer> {
  const server = createServer((request, response) => {
    // The name alone: nothing outside of the directory is ever served.
    const file = basename(request.url ?? '');
    void send(join(directory, file), response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (file) => `http://127.0.0.1:${port}/${file}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function send(path: string, response: ServerResponse): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'application/java-archive', 'content-length': found.size });
  await pipeline(createReadStream(path), response).catch(() => {}); // the reader went away
}
