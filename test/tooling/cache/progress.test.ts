import { describe, expect, it } from 'vitest';
import { formatElapsed, progressPrinter } from '../../../samples/cache/progress.ts';

describe('formatElapsed', () => {
  it.each([
    [0, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min 00 s'],
    [283_000, '4 min 43 s'],
  ])('%i ms is %s', (elapsedMs, text) => {
    expect(formatElapsed(elapsedMs)).toBe(text);
  });
});

describe('progressPrinter', () => {
  const record = (properties: Partial<NodeJS.WriteStream>) => {
    const written: string[] = [];
    const stream = { write: (text: string) => written.push(text), ...properties } as unknown as NodeJS.WriteStream;
    return { written, printer: progressPrinter(stream) };
  };

  it('writes a line each into a log', () => {
    const { written, printer } = record({ isTTY: false });
    printer.onProgress('one');
    printer.onProgress('two');
    printer.done();
    expect(written.join('')).toBe('one\ntwo\n');
  });

  it('overwrites one line on a terminal, no longer than it is wide', () => {
    const { written, printer } = record({ isTTY: true, columns: 10 });
    printer.onProgress('x'.repeat(50));
    printer.done();
    expect(written).toEqual([`\r\x1b[K${'x'.repeat(9)}`, '\n']);
  });
});
