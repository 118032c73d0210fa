import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Exported } from '../../src/platform/export/export-service.ts';

const PATH = '/v1/exportservices';

export interface FeedAnswer {
  readonly status: number;
  readonly etag: string;
  readonly text: string;
}

/** A certificate of 127.0.0.1 and tokens of balancers and applications, in files as a mounted Secret has them. */
export class FeedFiles {
  readonly directory: string;
  readonly ca: string;

  private constructor(directory: string, ca: string) {
    this.directory = directory;
    this.ca = ca;
  }

  static async write(
    pair: { readonly certificate: string; readonly privateKey: string; readonly ca: string },
    tokens: Readonly<Record<string, string>>,
    appTokens: Readonly<Record<string, string>> = {},
  ): Promise<FeedFiles> {
    const directory = await mkdtemp(join(tmpdir(), 'feed-'));
    await writeFile(join(directory, 'tls.crt'), pair.certificate);
    await writeFile(join(directory, 'tls.key'), pair.privateKey);
    for (const [folder, all] of Object.entries({ tokens, apps: appTokens })) {
      await mkdir(join(directory, folder));
      for (const [owner, token] of Object.entries(all)) await writeFile(join(directory, folder, owner), `${token}\n`);
    }
    return new FeedFiles(directory, pair.ca);
  }

  get env(): Record<string, string> {
    return {
      EXPORT_PORT: '0',
      EXPORT_CERT_PATH: join(this.directory, 'tls.crt'),
      EXPORT_KEY_PATH: join(this.directory, 'tls.key'),
      EXPORT_TOKENS_PATH: join(this.directory, 'tokens'),
      CATALOG_TOKENS_PATH: join(this.directory, 'apps'),
    };
  }

  remove(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

/** A balancer, or an application, of one replica. */
export class FeedClient {
  readonly #ca: string;
  readonly #port: number;
  readonly #token: string | undefined;

  constructor(options: { readonly ca: string; readonly port: number; readonly token: string | undefined }) {
    this.#ca = options.ca;
    this.#port = options.port;
    this.#token = options.token;
  }

  with(token: string | undefined): FeedClient {
    return new FeedClient({ ca: this.#ca, port: this.#port, token });
  }

  get(query: string, headers: Record<string, string> = {}): Promise<FeedAnswer> {
    return this.getPath(`${PATH}${query}`, headers);
  }

  /** Of any path of the port. */
  async getPath(path: string, headers: Record<string, string> = {}): Promise<FeedAnswer> {
    const response = await this.#open(path, headers);
    let text = '';
    response.setEncoding('utf8');
    for await (const chunk of response) text += chunk;
    return { status: response.statusCode ?? 0, etag: response.headers.etag ?? '', text };
  }

  async list(query: string): Promise<Exported[]> {
    const { status, text } = await this.get(query);
    if (status !== 200) throw new Error(`${status} ${text}`);
    return JSON.parse(text);
  }

  /** Calls back for each line until the stream ends, which is reported; the answer ends it from this side. */
  async watch(
    query: string,
    onLine: (line: { readonly type: string; readonly object?: Exported }) => void,
    onEnd: () => void = () => {},
  ): Promise<() => void> {
    const response = await this.#open(`${PATH}${query}&watch=1`, {});
    if (response.statusCode !== 200) throw new Error(`watch: ${response.statusCode}`);
    response.setEncoding('utf8');
    let rest = '';
    response.on('data', (chunk: string) => {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) if (part !== '') onLine(JSON.parse(part));
    });
    response.on('error', () => {});
    response.once('close', onEnd);
    return () => response.destroy();
  }

  #open(path: string, headers: Record<string, string>): Promise<IncomingMessage> {
    const authorization: Record<string, string> =
      this.#token === undefined ? {} : { Authorization: `Bearer ${this.#token}` };
    return new Promise((resolve, reject) => {
      request(
        {
          host: '127.0.0.1',
          port: this.#port,
          path,
          ca: this.#ca,
          headers: { ...authorization, ...headers },
          agent: false,
        },
        resolve,
      )
        .once('error', reject)
        .end();
    });
  }
}
