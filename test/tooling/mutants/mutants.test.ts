import { afterAll, describe, expect, it } from 'vitest';
import { Compiler } from '../../mutants/compiler.ts';
import { type Mutant, mutantsOf, mutatedText, probedText } from '../../mutants/mutants.ts';

const ROOT = '/snippet';
const FILE = `${ROOT}/file.ts`;
const CONFIG = JSON.stringify({
  compilerOptions: { target: 'es2024', strict: true, noEmit: true, types: [] },
  files: ['file.ts'],
});

const compiler = new Compiler(ROOT, { [FILE]: '', [`${ROOT}/tsconfig.json`]: CONFIG });
afterAll(() => compiler.close());

function mutants(text: string): Mutant[] {
  compiler.replace(FILE, text);
  return mutantsOf(compiler.parse(FILE), 'file.ts');
}

/** The texts that the mutants of a text make of it. */
function made(text: string): string[] {
  return mutants(text).map((mutant) => mutatedText(text, mutant));
}

describe('a mutant replaces one token', () => {
  it.each([
    ['boundary', 'a < b;', ['a <= b;']],
    ['boundary', 'a <= b;', ['a < b;']],
    ['boundary', 'a > b;', ['a >= b;']],
    ['boundary', 'a >= b;', ['a > b;']],
    ['equality', 'a === b;', ['a !== b;']],
    ['equality', 'a !== b;', ['a === b;']],
    ['logic', 'a && b;', ['a || b;']],
    ['logic', 'a || b;', ['a && b;']],
    ['logic', 'a ?? b;', ['a && b;']],
    ['negation', 'f(!a);', ['f(a);']],
    ['arithmetic', 'a + b;', ['a - b;']],
    ['arithmetic', 'a * b;', ['a / b;']],
    ['arithmetic', 'a % b;', ['a * b;']],
    ['arithmetic', 'a += b;', ['a -= b;']],
    ['arithmetic', 'a++;', ['a--;']],
    ['arithmetic', '--a;', ['++a;']],
    ['boolean', 'f(true);', ['f(false);']],
    ['number', 'f(0);', ['f(1);']],
    ['number', 'f(99);', ['f(100);']],
    ['number', 'f(1_000);', ['f(2000);']],
    ['collection', 'a.delete(b);', ['a.has(b);']],
    ['collection', 'a?.b.add(c);', ['a?.b.has(c);']],
    ['call', 'a.some(b);', ['a.every(b);']],
    ['call', 'Math.min(a, b);', ['Math.max(a, b);']],
    ['jump', 'for (;;) { continue; }', ['for (;;) { break; }']],
    ['jump', 'for (;;) break;', ['for (;;) continue;']],
    ['return', 'function f() { if (a) return; b(); }', ['function f() { if (a) ; b(); }']],
  ])('%s: %s', (operator, text, expected) => {
    expect(made(text)).toEqual(expected);
    expect(mutants(text).map((mutant) => mutant.operator)).toEqual([operator]);
  });

  it('with its line', () => {
    expect(mutants('f();\n\nf(true);').map(({ line, from, to }) => ({ line, from, to }))).toEqual([
      { line: 3, from: 'true', to: 'false' },
    ]);
  });
});

describe('no mutant', () => {
  it.each([
    ['of a text', "f('a < b && true', `1 + 2`);"],
    ['of a comment', 'f(); // a < b, true, 1'],
    ['of a regular expression', 'f(/a+1/);'],
    ['of a type', 'type T = 1 | true; const a: Array<2> | false = b as 3;'],
    ['of an interface', 'interface I { a: true; b: 1 }'],
    ['of the name of a property', 'f({ 1: a });'],
    ['of what is logged', "this.#options.logger.warn({ a: b + 1, c: !d }, 'e');"],
    ['of what is logged at a level', "logger[a ? 'debug' : 'warn']({ b: c - 1 }, 'e');"],
    ['of a Map that is emptied otherwise', 'a.delete(b, c); a.delete();'],
    ['where equal operands make no difference', 'a > b ? a : b;'],
    ['of once, for a signal that fires once', "a.addEventListener('abort', b, { once: true });"],
    ['of a jump out of a switch', 'for (;;) switch (a) { case b: break; }'],
    ['of a return at the end', 'function f() { a(); return; }'],
    ['of a return with a value', 'function f() { if (a) return b; c(); }'],
  ])('%s', (_, text) => {
    expect(made(text)).toEqual([]);
  });
});

it('of an order is the sign of its result, not its boundary', () => {
  expect(made('a < b ? -1 : 1;')).toEqual(['a < b ? 1 : 1;', 'a < b ? -1 : -1;']);
  expect(made('a < b ? 1 : -1;')).toEqual(['a < b ? -1 : -1;', 'a < b ? 1 : 1;']);
  expect(made('f(-1, a(1) ? -1 : 1);')).toContain('f(-2, a(1) ? -1 : 1);');
  expect(made('f(-1, a(1) ? -1 : 1);')).toContain('f(-1, a(2) ? -1 : 1);');
});

describe('the compiler', () => {
  const text = 'export function f(a: number, b: string): string { return a < 1 ? b : b + a; }';

  it('takes a mutant that keeps the types, and refuses one that does not', () => {
    const verdicts = mutants(text).map((mutant) => [mutant.to, compiler.accepts(FILE, mutatedText(text, mutant))]);
    expect(verdicts).toEqual([
      ['<=', true],
      ['2', true],
      ['-', false],
    ]);
    expect(compiler.accepts(FILE, text)).toBe(true);
  });

  it('refuses what cannot be parsed', () => {
    expect(compiler.accepts(FILE, 'f(')).toBe(false);
  });
});

describe('code with probes', () => {
  /** What the probes of a text note while it runs, and its result. */
  function run(text: string): { notes: number[]; result: unknown } {
    const notes: number[] = [];
    const probed = probedText(text, [...mutants(text).entries()], 'probe');
    const result: unknown = new Function('probe', probed)((index: number) => notes.push(index));
    return { notes, result };
  }

  it('does what it did, and notes the places that run', () => {
    const text = 'let sum = 0; for (let i = 0; i < 3; i++) { if (i === 1) continue; sum += i * 2; } return sum;';
    const { notes, result } = run(text);
    expect(result).toBe(4);
    expect(new Set(notes)).toEqual(new Set(mutants(text).keys()));
  });

  it('notes nothing of a branch that is not taken', () => {
    const text = 'const a = new Set([]); if (a.size) return 1; return 2;';
    expect(mutants(text).map(({ from }) => from)).toEqual(['1', '2']);
    expect(run(text)).toEqual({ notes: [1], result: 2 });
  });

  it('does not break a chain with an absent start', () => {
    expect(run('let a; return a?.some(String).length?.b;')).toMatchObject({ result: undefined });
  });
});
