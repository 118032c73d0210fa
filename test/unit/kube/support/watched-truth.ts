import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { KubeObject } from '../../../../src/kube/objects.ts';

/** How a connection ends: closed, reset, or the answer ended in good order. */
export type Cut = 'FIN' | 'RST' | 'end';

export interface WatchLine {
  readonly type: string;
  readonly object: { readonly code?: number; readonly metadata?: Partial<KubeObject['metadata']> };
}

/** What a watch brings: first all of `before`, and when its last line, a 410, was sent, lists begin with `after`. */
export interface Story {
  readonly before: readonly WatchLine[];
  readonly after: readonly WatchLine[];
  /** The first answer ends after so many bytes; all others are whole. */
  readonly cutAt: number;
  readonly cut: Cut;
}

/** An API server of collections, each with a story of its own, that resumes watches after their resourceVersion. */
export class WatchedTruth {
  /** By path: `list`, or the version that was resumed from. */
  readonly asked = new Map<string, string[]>();
  readonly #server: Server;
  readonly #stories = new Map<string, Story & { wasGone: boolean }>();

  private constructor() {
    this.#server = createServer((request, response) => this.#serve(request, response));
  }

  static async start(): Promise<WatchedTruth> {
    const truth = new WatchedTruth();
    await new Promise<void>((resolve) => {
      truth.#server.listen(0, '127.0.0.1', resolve);
    });
    return truth;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  tell(path: string, story: Story): void {
    this.#stories.set(path, { ...story, wasGone: false });
    this.asked.set(path, []);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #serve({ url = '', socket }: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(url, this.url);
    const story = this.#stories.get(pathname);
    const asked = this.asked.get(pathname);
    if (story === undefined || asked === undefined) throw new Error(`no story of ${pathname}`);
    const from = searchParams.get('resourceVersion');
    asked.push(from ?? 'list');
    const bytes = bytesOf(linesAfter(story, from));
    const isCut = asked.length === 1;
    const sent = isCut ? bytes.subarray(0, story.cutAt) : bytes;
    if (sent.length === bytes.length) story.wasGone = true;
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    response.write(sent, () => isCut && endConnection(response, socket, story.cut));
  }
}

/** As a watch sends it. */
export function bytesOf(lines: readonly WatchLine[]): Buffer {
  return Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

function linesAfter({ before, after, wasGone }: Story & { wasGone: boolean }, from: string | null) {
  if (from === null) return wasGone ? after : before;
  const lines = wasGone && Number(from) >= versionOf(after[0]) ? after : before;
  return lines.filter((line) => !(versionOf(line) <= Number(from)));
}

/** NaN for an ERROR: it comes whatever was seen before. */
function versionOf(line: WatchLine | undefined): number {
  return Number(line?.object.metadata?.resourceVersion);
}

function endConnection(response: ServerResponse, socket: Socket, cut: Cut): void {
  if (cut === 'end') response.end();
  else if (cut === 'FIN') socket.destroy();
  else socket.resetAndDestroy();
}
