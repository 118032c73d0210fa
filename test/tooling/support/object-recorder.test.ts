import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError, type KubeObject, type WatchEvent } from '../../../samples/control-plane/api-client.ts';
import { ObjectRecorder } from '../../support/cluster/object-recorder.ts';
import { eventually } from '../../support/eventually.ts';

/** An API server with one path; what its clients see is written down by the test. */
class FakeServer {
  items: KubeObject[] = [];
  resourceVersion = '10';
  /** Answers of the next watches, in order; after them watches succeed. */
  refusals: ApiError[] = [];
  readonly watched: string[] = [];
  #listener: ((event: WatchEvent) => void) | undefined;
  #end: ((error?: Error) => void) | undefined;

  async get(): Promise<KubeObject> {
    return { metadata: { resourceVersion: this.resourceVersion }, items: this.items };
  }

  async watch(path: string, onEvent: (event: WatchEvent) => void) {
    this.watched.push(path);
    const refusal = this.refusals.shift();
    if (refusal) throw refusal;
    this.#listener = onEvent;
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => (error ? reject(error) : resolve());
    });
    ended.catch(() => {});
    return { stop: () => this.#end?.(), ended };
  }

  tell(type: WatchEvent['type'], object: KubeObject): void {
    this.#listener?.({ type, object });
  }

  cut(): void {
    this.#end?.(new Error('cut'));
  }
}

const object = (name: string, resourceVersion: string): KubeObject => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion },
});

let server: FakeServer;
let seen: string[];

beforeEach(() => {
  server = new FakeServer();
  seen = [];
});

function start(): Promise<ObjectRecorder> {
  return ObjectRecorder.start(server, '/api/v1/things', ({ object: { metadata }, isGone }) => {
    seen.push(`${metadata.name} ${metadata.resourceVersion}${isGone ? ' gone' : ''}`);
  });
}

describe('a recorder of objects', () => {
  it('tells those of now and then each version', async () => {
    server.items = [object('a', '3')];
    const recorder = await start();
    server.tell('MODIFIED', object('a', '11'));
    server.tell('ADDED', object('b', '12'));
    server.tell('DELETED', object('a', '13'));
    await recorder.stop();
    expect(seen).toEqual(['a 3', 'a 11', 'b 12', 'a 13 gone']);
  });

  it('goes on from the last version after a cut, bookmarks included', async () => {
    const recorder = await start();
    server.tell('ADDED', object('a', '11'));
    server.tell('BOOKMARK', object('', '15'));
    server.refusals = [new ApiError('WATCH', 503, '')];
    server.cut();
    await eventually(() => expect(server.watched).toHaveLength(3));
    server.tell('MODIFIED', object('a', '16'));
    await recorder.stop();
    expect(server.watched.map((path) => path.slice(-2))).toEqual(['10', '15', '15']);
    expect(seen).toEqual(['a 11', 'a 16']);
  });

  it('lists anew where that version is too old, and tells the differences', async () => {
    server.items = [object('a', '1'), object('b', '2'), object('c', '3')];
    const recorder = await start();
    server.items = [object('a', '1'), object('b', '21'), object('d', '22')];
    server.resourceVersion = '30';
    server.refusals = [new ApiError('WATCH', 410, '')];
    server.cut();
    await eventually(() => expect(server.watched.at(-1)).toMatch(/=30$/));
    expect(seen.slice(3)).toEqual(['c 3 gone', 'b 21', 'd 22']);
    server.tell('ERROR', { code: 410 });
    server.resourceVersion = '40';
    await eventually(() => expect(server.watched.at(-1)).toMatch(/=40$/));
    expect(seen).toHaveLength(6);
    await recorder.stop();
  });
});
