import { describe, expect, it } from 'vitest';
import { readWatchStream } from '../../../src/kube/watch/reflector.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { added, bookmark, errorEvent, modified, pod } from './support/rig.ts';

async function* chunksOf(...chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

async function read(body: AsyncIterable<Buffer>, onType: (type: string) => void = () => {}) {
  const types: string[] = [];
  const unreadable: string[] = [];
  let error: unknown;
  try {
    await readWatchStream({
      body,
      clock: new FakeClock(),
      onBytes: () => {},
      takesLine: () => false,
      onEvent: (event) => {
        types.push(event.type);
        onType(event.type);
        return undefined;
      },
      onUnreadable: (why) => unreadable.push(why),
    });
  } catch (caught) {
    error = caught;
  }
  return { types, unreadable, error };
}

const line = (value: unknown): string => `${JSON.stringify(value)}\n`;

describe('readWatchStream', () => {
  it('reads the same events wherever the stream is cut', async () => {
    const bytes = Buffer.from(line(added(pod('ä', 1))) + line(bookmark(2)) + line(errorEvent(410, 'Expired')));
    for (let at = 0; at <= bytes.length; at++) {
      const { types, unreadable, error } = await read(chunksOf(bytes.subarray(0, at), bytes.subarray(at)));
      expect({ types, unreadable, error }).toEqual({
        types: ['ADDED', 'BOOKMARK', 'ERROR'],
        unreadable: [],
        error: undefined,
      });
    }
  });

  it('takes an unfinished last line for no event and no error', async () => {
    const bytes = Buffer.from(line(added(pod('a', 1))) + line(modified(pod('a', 2))));
    const end = line(added(pod('a', 1))).length;
    for (let length = end; length < bytes.length; length++) {
      expect(await read(chunksOf(bytes.subarray(0, length)))).toEqual({
        types: ['ADDED'],
        unreadable: [],
        error: undefined,
      });
    }
  });

  it('gives up with Kube.WatchFailed on a line that is no JSON, and counts it', async () => {
    const { types, unreadable, error } = await read(
      chunksOf(Buffer.from(`${line(bookmark(1))}{"type":\n${line(bookmark(2))}`)),
    );
    expect(types).toEqual(['BOOKMARK']);
    expect(unreadable).toEqual(['not JSON']);
    expect(error).toMatchObject({ code: 'Kube.WatchFailed' });
  });

  it.each([
    ...['null', '5', '"ADDED"', '[]', '{}', '{"type":"ADDED"}', '{"type":"ADDED","object":{}}'],
    ...['{"type":"ADDED","object":null}', '{"type":"ADDED","object":7}', '{"type":"ERROR","object":null}'],
    ...['{"type":7,"object":{"metadata":{}}}', '{"object":{"metadata":{}}}', '{"type":"ERROR"}'],
  ])('takes %s for a damaged line', async (text) => {
    const { unreadable, error } = await read(chunksOf(Buffer.from(`${text}\n`)));
    expect(unreadable).toEqual(['not a watch event']);
    expect(error).toMatchObject({ code: 'Kube.WatchFailed' });
  });

  it('does not take an exception of the callback for a parse error', async () => {
    const failure = new Error('callback');
    const { unreadable, error } = await read(chunksOf(Buffer.from(line(bookmark(1)))), () => {
      throw failure;
    });
    expect(unreadable).toEqual([]);
    expect(error).toBe(failure);
  });

  it.each([
    [16_777_216, ['ADDED', 'BOOKMARK'], []],
    [16_777_217, ['BOOKMARK'], ['longer than 16777216 bytes']],
  ])(
    'leaves out a line over 16 MiB, more than any object can have, and reads on: a line of %i bytes',
    async (byteCount, types, unreadable) => {
      const long = '{"type":"ADDED","object":{"metadata":{}}}'.padEnd(byteCount);
      const result = await read(chunksOf(Buffer.from(`${long}\n${line(bookmark(1))}`)));
      expect(result).toEqual({ types, unreadable, error: undefined });
    },
  );

  it('lets other work run after 5 ms of its own', async () => {
    const clock = new FakeClock();
    let isTurnOver = false;
    setImmediate(() => {
      isTurnOver = true;
    });
    const turns: boolean[] = [];
    await readWatchStream({
      body: chunksOf(Buffer.from(line(bookmark(1)) + line(bookmark(2)) + line(bookmark(3)))),
      clock,
      onBytes: () => {},
      takesLine: () => false,
      onEvent: () => {
        turns.push(isTurnOver);
        clock.advance(3);
        return undefined;
      },
      onUnreadable: () => {},
    });
    expect(turns).toEqual([false, false, true]);
  });
});
