import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { BodyDropped, BodyReader } from '../../../../tunnels/http/body-reader.ts';
import { settle } from '../../../support/fake-clock.ts';

const KIB = 1024;

describe('BodyReader', () => {
  let dropped: string[];
  let reader: BodyReader;

  beforeEach(() => {
    dropped = [];
    reader = new BodyReader({ maxBytes: 32 * KIB, onDropped: (source) => dropped.push(source) });
  });

  /** Begins to read a body; `outcome` is its text, or what it failed with. */
  function begin(source = 'a', maxBytes = 16 * KIB) {
    const stream = new PassThrough();
    const outcome = reader.read(stream, { source, maxBytes }).then(
      (body) => Buffer.from(body).toString(),
      (error: unknown) => error,
    );
    return { stream, outcome };
  }

  it('puts a body together, and keeps nothing of it', async () => {
    const { stream, outcome } = begin();
    stream.write('x'.repeat(1_000));
    stream.write('y'.repeat(3_000));
    await settle();
    expect(reader.byteLength).toBeGreaterThanOrEqual(4_000);
    stream.end('z');
    expect(await outcome).toBe(`${'x'.repeat(1_000)}${'y'.repeat(3_000)}z`);
    expect(reader.byteLength).toBe(0);
  });

  it('reads nothing of an empty one', async () => {
    const { stream, outcome } = begin();
    stream.end();
    expect([await outcome, reader.byteLength]).toEqual(['', 0]);
  });

  it('reads of one that is too long one byte more than it may have', async () => {
    const { stream, outcome } = begin();
    stream.write('x'.repeat(10 * KIB));
    stream.write('x'.repeat(10 * KIB));
    expect(await outcome).toHaveLength(16 * KIB + 1);
    expect(reader.byteLength).toBe(0);
    stream.write('more');
    await settle();
    expect(reader.byteLength).toBe(0);
  });

  it('takes no more memory for a body of single bytes than twice its length', async () => {
    const { stream } = begin();
    for (let count = 0; count < 5_000; count++) stream.write('x');
    await settle();
    expect(reader.byteLength).toBeLessThanOrEqual(10_000);
  });

  it.each([
    ['ends early', undefined],
    ['fails', new Error('reset')],
  ])('fails when the stream %s, and keeps nothing', async (_what, error) => {
    const { stream, outcome } = begin();
    stream.write('x');
    await settle();
    stream.destroy(error);
    expect(await outcome).toEqual(error ?? new Error('it was cut off'));
    expect(reader.byteLength).toBe(0);
  });

  it('drops the bodies that began first when all together are too long, and reads short ones all the same', async () => {
    const stalled = ['a', 'b', 'c'].map((source) => begin(source));
    for (const { stream } of stalled) {
      stream.write('x'.repeat(12 * KIB));
      await settle();
    }
    expect([dropped, reader.byteLength]).toEqual([['a'], 24 * KIB]);
    expect(await stalled[0]?.outcome).toBeInstanceOf(BodyDropped);
    const short = begin('d');
    short.stream.end('{}');
    expect(await short.outcome).toBe('{}');
    const [, second, third] = stalled;
    second?.stream.end();
    third?.stream.end();
    expect([await second?.outcome, await third?.outcome].map((body) => String(body).length)).toEqual([12_288, 12_288]);
    expect([dropped, reader.byteLength]).toEqual([['a'], 0]);
  });

  it('does not count a body that has sent nothing', async () => {
    const { stream } = begin();
    await settle();
    expect(reader.byteLength).toBe(0);
    stream.destroy();
  });
});
