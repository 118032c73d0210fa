import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import { statusOf } from './rig.ts';

export type Loss = 'reset' | 'truncated' | 401 | 429 | 500 | 503;

/** What happens to the next request: before the API server has done it, or after. */
export interface LossyFault {
  readonly loss: Loss;
  readonly isDone: boolean;
  readonly retryAfter?: string;
}

/** A store of objects behind HTTP, with versions and UIDs, that can do what it is asked and lose the answer. */
export class LossyApi {
  /** By path. */
  readonly objects = new Map<string, KubeObject>();
  /** `PATCH 200`: what was done, whatever was answered. */
  readonly done: string[] = [];
  /** Emptied by requests, first to last. */
  readonly faults: LossyFault[] = [];
  readonly #server: Server;
  #version = 1;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: Error) => response.destroy(error));
    });
  }

  static async start(): Promise<LossyApi> {
    const api = new LossyApi();
    await new Promise<void>((resolve) => {
      api.#server.listen(0, '127.0.0.1', resolve);
    });
    return api;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  put(path: string, uid: string): KubeObject {
    const object = { metadata: { name: path.split('/').at(-1) ?? '', uid, resourceVersion: String(this.#version++) } };
    this.objects.set(path, object);
    return object;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', socket } = request;
    const body = JSON.parse((await buffer(request)).toString() || '{}');
    const fault = this.faults.shift();
    const [code, answer] = fault?.isDone === false ? [0, {}] : this.#do(method, new URL(url, this.url).pathname, body);
    if (code > 0) this.done.push(`${method} ${code}`);
    if (fault?.loss === 'reset') {
      socket.resetAndDestroy();
      return;
    }
    const status = typeof fault?.loss === 'number' ? fault.loss : code;
    const text = JSON.stringify(status === code ? answer : statusOf(status, 'Lost'));
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    response.writeHead(status, fault?.retryAfter ? { ...headers, 'retry-after': fault.retryAfter } : headers);
    if (fault?.loss === 'truncated') response.write(text.slice(0, text.length / 2), () => socket.destroy());
    else response.end(text);
  }

  #do(method: string, path: string, body: Record<string, KubeObject['metadata']>): [number, object] {
    const { metadata } = body;
    const key = method === 'POST' ? `${path}/${metadata?.name}` : path.replace(/\/status$/, '');
    const object = this.objects.get(key);
    if (method === 'POST') {
      return object ? [409, statusOf(409, 'AlreadyExists')] : [201, this.put(key, `uid-${this.#version}`)];
    }
    if (object === undefined) return [404, statusOf(404, 'NotFound')];
    if (method === 'GET') return [200, object];
    if (method === 'DELETE') {
      this.objects.delete(key);
      return [200, statusOf(200, '')];
    }
    const { resourceVersion = object.metadata.resourceVersion } = metadata ?? {};
    if (resourceVersion !== object.metadata.resourceVersion) return [409, statusOf(409, 'Conflict')];
    return [200, this.put(key, object.metadata.uid ?? '')];
  }
}
