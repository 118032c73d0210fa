import { type Bytes, lossyTextOf } from './bytes.ts';

/** Bounds of one rendering, and of a template. */
export interface Limits {
  /** Bytes of a template. */
  readonly templateBytes: number;
  /** Evaluated nodes. 64 bytes of text that a function reads or makes are one step, too. */
  readonly steps: number;
  /** Bytes of the output, and of each string that a function makes. */
  readonly outputBytes: number;
  /** Blocks within blocks, parentheses, templates that use templates, and maps and lists within each other. */
  readonly depth: number;
}

export const LIMITS: Limits = { templateBytes: 65_536, steps: 100_000, outputBytes: 262_144, depth: 200 };

/**
 * Kinds of faults. `Syntax` and `Execution`: Go refuses as well. `Unsupported`: Go may accept, and this language refuses
 * because it would not do the same. `Limit`: a bound of {@link Limits}.
 */
export type FaultCode = 'Syntax' | 'Execution' | 'Unsupported' | 'Limit';

/** A place where a template is wrong, or where its rendering ended. */
export interface TemplateFault {
  readonly code: FaultCode;
  /** Name of the template that was given to the parser. */
  readonly template: string;
  /** Lines and columns count from 1; columns in characters. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** The line of the template around the place. */
  readonly excerpt: string;
}

/** Ends the reading or the rendering of a template. It does not leave this folder. */
export class Halt extends Error {
  readonly code: FaultCode;
  /** Place in the template, in bytes. Without one it is that of the node which is evaluated. */
  readonly offset: number | undefined;

  constructor(code: FaultCode, message: string, offset?: number) {
    super(message);
    this.name = 'Halt';
    this.code = code;
    this.offset = offset;
  }
}

export function refused(message: string): Halt {
  return new Halt('Unsupported', message);
}

/** A failure of Go's that this language has as well. */
export function failed(message: string): Halt {
  return new Halt('Execution', message);
}

const BYTES_OF_STEP = 64;

/** Counts what one rendering takes, and ends it at a bound. */
export class Budget {
  readonly limits: Limits;
  #steps = 0;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  spend(steps = 1): void {
    this.#steps += steps;
    if (this.#steps > this.limits.steps) {
      throw new Halt('Limit', `the template takes more than ${this.limits.steps} steps`);
    }
  }

  spendBytes(count: number): void {
    this.spend(count / BYTES_OF_STEP);
  }

  /** Asks before a string is made. */
  checkLength(bytes: number): void {
    if (bytes > this.limits.outputBytes) {
      throw new Halt('Limit', `the output, or a string, has more than ${this.limits.outputBytes} bytes`);
    }
  }

  checkDepth(depth: number): void {
    if (depth > this.limits.depth) {
      throw new Halt('Limit', `blocks, parentheses, templates or values are nested deeper than ${this.limits.depth}`);
    }
  }
}

/** Text that grows within the bounds. */
export class Writer {
  readonly budget: Budget;
  #text = '';

  constructor(budget: Budget) {
    this.budget = budget;
  }

  get text(): string {
    return this.#text;
  }

  write(piece: string): void {
    this.budget.checkLength(this.#text.length + piece.length);
    this.budget.spendBytes(piece.length);
    this.#text += piece;
  }

  repeat(piece: string, count: number): void {
    if (count <= 0) return;
    this.budget.checkLength(this.#text.length + piece.length * count);
    this.write(piece.repeat(count));
  }
}

const AROUND = 60;

/** The fault at an offset of a template's text. */
export function faultAt(
  { name, text }: { name: string; text: Bytes },
  { code, message, offset }: { code: FaultCode; message: string; offset: number },
): TemplateFault {
  const start = offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
  const newline = text.indexOf('\n', offset);
  const line = text.slice(0, start).split('\n').length;
  const before = [...lossyTextOf(text.slice(start, offset))];
  const after = [...lossyTextOf(text.slice(offset, newline < 0 ? undefined : newline))];
  const excerpt = [...before.slice(-AROUND), ...after.slice(0, AROUND)].join('').trim();
  return { code, template: name, line, column: before.length + 1, message, excerpt };
}
