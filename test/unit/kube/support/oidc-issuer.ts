import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Identity } from './certificates.ts';

export interface TokenRequest {
  readonly authorization: string | undefined;
  readonly form: Record<string, string>;
}

export interface Answer {
  readonly status?: number;
  /** JSON, or a text to send as it is; undefined = no answer at all. */
  readonly body: object | string | undefined;
}

/** An OpenID Connect issuer on loopback that answers as a test says. */
export class OidcIssuer {
  /** What the token endpoint was asked. */
  readonly requests: TokenRequest[] = [];
  /** More fields of the discovery document. */
  discovery: object = {};
  answer: Answer = { body: {} };
  readonly #server: Server;

  private constructor(identity: Identity) {
    this.#server = createServer(identity, async (request, response) => {
      const send = ({ status = 200, body }: Answer): void => {
        if (body === undefined) return;
        response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
      };
      if (request.url === '/dex/.well-known/openid-configuration') {
        send({ body: { issuer: this.url, token_endpoint: `${this.url}/token`, ...this.discovery } });
      } else if (request.url === '/dex/token' && request.method === 'POST') {
        const form = Object.fromEntries(new URLSearchParams(await text(request)));
        this.requests.push({ authorization: request.headers.authorization, form });
        send(this.answer);
      } else {
        send({ status: 404, body: '<h1>Not found</h1>' });
      }
    });
  }

  static async start(identity: Identity): Promise<OidcIssuer> {
    const issuer = new OidcIssuer(identity);
    issuer.#server.listen(0, '127.0.0.1');
    await once(issuer.#server, 'listening');
    return issuer;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}/dex`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
