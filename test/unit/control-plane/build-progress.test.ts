import { describe, expect, it } from 'vitest';
import { BuildProgress, formatElapsed, progressPrinter } from '../../../samples/control-plane/build-progress.ts';

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

describe('BuildProgress', () => {
  it('counts packages, not messages, and names the latest', () => {
    const progress = new BuildProgress({ packageCount: 2488, programs: ['k8s.io/kubernetes/cmd/kube-apiserver'] });
    progress.take('go: downloading k8s.io/api v0.35.4');
    progress.take('k8s.io/api/core/v1');
    expect(progress.describe(65_000)).toBe('compiling package 1 of 2488, 1 min 05 s (k8s.io/api/core/v1)');
  });

  it('says so when only the links are left', () => {
    const progress = new BuildProgress({ packageCount: 3, programs: ['a/cmd/x', 'a/cmd/y'] });
    for (const line of ['lib', 'a/cmd/x']) progress.take(line);
    expect(progress.describe(0)).toContain('compiling package 2 of 3');
    progress.take('a/cmd/y');
    expect(progress.describe(3_000)).toBe('linking the programs, 3 s');
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
