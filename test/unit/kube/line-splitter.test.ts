import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../../src/kube/watch/reflector.ts';

function split(chunks: readonly Buffer[], maxLineBytes = 1000) {
  let overlong = 0;
  const splitter = new LineSplitter(maxLineBytes, () => overlong++);
  const lines = chunks.flatMap((chunk) => splitter.push(chunk).map((line) => line.toString('utf8')));
  return { lines, overlong };
}

describe('LineSplitter', () => {
  it('gives the same lines wherever the stream is cut, also inside a character', () => {
    const bytes = Buffer.from('{"a":"ä€𝄞"}\n\n{"b":2}\nunfinished');
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const chunks = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        expect(split(chunks).lines).toEqual(['{"a":"ä€𝄞"}', '{"b":2}']);
      }
    }
  });

  it('gives back any lines that were joined', () => {
    const line = fc.string({ unit: fc.constantFrom('a', '"', 'ä', '€', '𝄞', '\0', '\r'), minLength: 1 });
    fc.assert(
      fc.property(fc.array(line), fc.integer({ min: 1, max: 9 }), (lines, size) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        const chunks: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
        expect(split(chunks).lines).toEqual(lines);
      }),
    );
  });

  it('leaves out a line that is too long, tells of it once, and goes on with the next', () => {
    const bytes = Buffer.from('first\n12345678901\n1234567890\n');
    for (let size = 1; size <= bytes.length; size++) {
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      expect(split(chunks, 10)).toEqual({ lines: ['first', '1234567890'], overlong: 1 });
    }
  });
});
