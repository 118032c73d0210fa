import { FakeHttpBase, type HttpDelivery } from './fake-http-base.ts';

const PATH = 'members/messages';

type Headers = Record<string, string>;

/** The other end of a relay; a base of the tests serves for it. */
export class FakeMember {
  readonly #server: FakeHttpBase;
  readonly address: string;

  private constructor(server: FakeHttpBase, address: string) {
    this.#server = server;
    this.address = address;
  }

  static async start(host = '127.0.0.1', port = 0): Promise<FakeMember> {
    const server = await FakeHttpBase.start(host, port);
    return new FakeMember(server, `${host.includes(':') ? `[${host}]` : host}:${server.port}`);
  }

  get requestCount(): number {
    return this.#server.commands.length;
  }

  get connectionCount(): number {
    return this.#server.connectionCount;
  }

  /** Answers no request until it is told to; `received` hands them out. */
  hang(): void {
    this.#server.respond(PATH, () => {});
  }

  /** Answers every request so; `headers` may depend on it. */
  answer(status: number, headers: Headers | ((delivery: HttpDelivery) => Headers)): void {
    this.#server.respond(PATH, (delivery) => {
      const chosen = typeof headers === 'function' ? headers(delivery) : headers;
      delivery.response.writeHead(status, chosen).end('{}');
    });
  }

  /** Answers every request with this body. */
  answerWith(body: string): void {
    this.#server.respond(PATH, ({ response }) => void response.end(body));
  }

  received(): Promise<HttpDelivery> {
    return this.#server.received();
  }

  /** The bodies of the next request's messages. */
  async batch(): Promise<string[]> {
    const { body } = await this.received();
    return (JSON.parse(body) as { messages: { body: string }[] }).messages.map((message) => message.body);
  }

  close(): Promise<void> {
    return this.#server.close();
  }
}
