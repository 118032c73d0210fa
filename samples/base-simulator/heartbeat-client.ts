import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Clock } from '../../src/clock.ts';

/** As HttpURLConnection, with which the agent posts. */
const HEADERS = {
  'content-type': 'application/json',
  'user-agent': 'Java/17.0.15',
  accept: 'text/html, image/gif, image/jpeg, */*; q=0.2',
} as const;
const TIMEOUT_MS = 10_000;
/** A longer answer is not read to its end. */
const MAX_ANSWER_CHARACTERS = 1024 * 1024;

export interface HeartbeatClientOptions {
  /** `http://host:7777`. */
  readonly controllerUrl: string;
  readonly token?: string;
  readonly clock: Clock;
}

interface Attempt {
  text?: string;
  /** It failed on a connection that was kept from before. */
  isStale: boolean;
}

/** Posts to the controller on one connection that is kept, one message after the other. */
export class HeartbeatClient {
  readonly #options: HeartbeatClientOptions;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  /** Posts under way and in line. Emptied as they end. */
  readonly #requests = new Set<ClientRequest>();
  #isAborted = false;

  constructor(options: HeartbeatClientOptions) {
    this.#options = options;
  }

  /** Resolves with the body of a 200; undefined after anything else. Never rejects: the next heartbeat tries again. */
  async post(path: string, body: string): Promise<string | undefined> {
    const first = await this.#try(path, body);
    // A kept connection that the controller has closed meanwhile says nothing about the controller.
    const { text } = first.isStale ? await this.#try(path, body) : first;
    return text;
  }

  /** Gives up what is under way, for good. */
  abort(): void {
    this.#isAborted = true;
    for (const post of this.#requests) post.destroy();
    this.#agent.destroy();
  }

  #try(path: string, body: string): Promise<Attempt> {
    if (this.#isAborted) return Promise.resolve({ isStale: false });
    return new Promise((resolve) => {
      const post = this.#request(path, body);
      let isTimedOut = false;
      const timer = this.#options.clock.setTimer(() => {
        isTimedOut = true;
        post.destroy();
      }, TIMEOUT_MS);
      let answer: Promise<string | undefined> | undefined;
      post.on('response', (response) => {
        answer = textOf(response);
      });
      post.on('error', () => {}); // told by close
      post.on('close', () => {
        timer.cancel();
        this.#requests.delete(post);
        const isStale = answer === undefined && post.reusedSocket && !this.#isAborted && !isTimedOut;
        void Promise.resolve(answer).then((text) => resolve({ isStale, ...(text === undefined ? {} : { text }) }));
      });
      post.end(body);
    });
  }

  #request(path: string, body: string): ClientRequest {
    const { controllerUrl, token } = this.#options;
    const post = request(`${controllerUrl.replace(/\/$/, '')}/${path}`, {
      method: 'POST',
      agent: this.#agent,
      headers: {
        ...HEADERS,
        'content-length': Buffer.byteLength(body),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    });
    this.#requests.add(post);
    return post;
  }
}

/** The body of a 200 that is not too long; undefined for any other answer, and for one that breaks off. */
async function textOf(response: IncomingMessage): Promise<string | undefined> {
  let text = '';
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk;
      if (text.length > MAX_ANSWER_CHARACTERS) return undefined;
    }
  } catch {
    return undefined;
  }
  return response.statusCode === 200 ? text : undefined;
}
