import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceProxy } from '../../support/cluster/service-proxy.ts';
import { eventually } from '../../support/eventually.ts';

let service: ServiceProxy;
let replicas: Replica[];

/** Answers with its name and what it was sent; or takes the message and says nothing. */
class Replica {
  readonly #server: Server;
  isHanging = false;
  /** Messages of bases; probes are none. */
  asked = 0;

  constructor(name: string) {
    this.#server = createServer(async (request, response) => {
      if (request.method === 'POST') this.asked += 1;
      let body = '';
      for await (const chunk of request) body += chunk;
      if (!this.isHanging) response.writeHead(201).end(`${name} ${request.method} ${request.url} ${body}`);
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

beforeEach(async () => {
  replicas = await Promise.all(['a', 'b', 'c'].map((name) => new Replica(name).start()));
  // A machine under load is no fault of a replica.
  service = await startService(60_000);
});

async function startService(answerWithinMs: number): Promise<ServiceProxy> {
  const started = await ServiceProxy.start({ answerWithinMs });
  for (const { port } of replicas) started.add(port);
  return started;
}

afterEach(async () => {
  await service.stop();
  await Promise.all(replicas.map((replica) => replica.stop()));
});

async function post(body = 'beat'): Promise<{ status: number; text: string }> {
  const response = await fetch(`${service.url}/heartbeat`, { method: 'POST', body });
  return { status: response.status, text: await response.text() };
}

async function answersOf(count: number): Promise<string> {
  let names = '';
  for (let index = 0; index < count; index++) names += (await post()).text.slice(0, 1);
  return names;
}

describe('a Service', () => {
  it('gives each message to the next replica, and its answer back', async () => {
    const { status, text } = await post();
    expect({ status, text: text.slice(2) }).toEqual({ status: 201, text: 'POST /heartbeat beat' });
    expect([...(await answersOf(6))].sort().join('')).toBe('aabbcc');
  });

  it('passes over a replica that refuses, and one that was taken out', async () => {
    await replicas[1]?.stop();
    expect(new Set(await answersOf(6))).toEqual(new Set('ac'));
    service.remove(replicas[0]?.port ?? 0);
    expect(await answersOf(3)).toBe('ccc');
    service.remove(replicas[2]?.port ?? 0);
    expect((await post()).status).toBe(503);
  });

  it('leaves a replica that hangs out after one try, until it answers again', async () => {
    const [, hanging] = replicas;
    if (!hanging) throw new Error('no replica');
    await service.stop();
    service = await startService(1_000);
    hanging.isHanging = true;
    expect(await answersOf(6)).toMatch(/^[ac]{6}$/);
    expect(hanging.asked).toBe(1);
    hanging.isHanging = false;
    await eventually(async () => expect(await answersOf(3)).toContain('b'));
  });

  it('sends everything to the replica it is pinned to', async () => {
    service.pin(replicas[2]?.port ?? 0);
    expect(await answersOf(4)).toBe('cccc');
    service.pin();
    expect(new Set(await answersOf(3))).toEqual(new Set('abc'));
  });

  it('sends all of one base to one of the replicas it is pinned to, and as many bases to each', async () => {
    service.pin(replicas[0]?.port ?? 0, replicas[2]?.port ?? 0);
    const answers: string[] = [];
    for (const identity of ['b1', 'b2', 'b1', 'b3', 'b4', 'b2', 'b4', 'b3']) {
      const { text } = await post(`{"data":{"baseMetadata":{"identity":"${identity}"}}}`);
      answers.push(`${identity} ${text.slice(0, 1)}`);
    }
    expect([...new Set(answers)].sort()).toEqual(['b1 a', 'b2 c', 'b3 a', 'b4 c']);
  });
});
