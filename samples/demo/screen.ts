import { styleText } from 'node:util';
import { cut } from './table.ts';

const CLEAR_BELOW = '\x1b[J';
/** Where the terminal does not tell its size. */
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

/** What a screen writes to; `process.stdout` is one. */
export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** Lines that stay and, on a terminal, a block below them that is drawn again and again. */
export class Screen {
  readonly #terminal: Terminal;
  #block: readonly string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Whether a block can be shown at all. */
  get isLive(): boolean {
    return this.#terminal.isTTY === true;
  }

  get width(): number {
    return (this.#terminal.columns || DEFAULT_COLUMNS) - 1;
  }

  /** Lines that a block may have. */
  get height(): number {
    return (this.#terminal.rows || DEFAULT_ROWS) - 2;
  }

  /** A line that stays, above the block. It may be longer than the terminal is wide. */
  print(line: string): void {
    this.#terminal.write(`${this.#erase()}${line}\n${this.#draw()}`);
  }

  /** Replaces the block; nothing where there is no terminal. */
  show(lines: readonly string[]): void {
    if (!this.isLive) return;
    const erase = this.#erase();
    this.#block = lines.slice(0, this.height).map((line) => cut(line, this.width));
    this.#terminal.write(erase + this.#draw());
  }

  /** In colour where the terminal has any and NO_COLOR is not set. */
  paint(color: 'green' | 'red' | 'bold', text: string): string {
    return this.isLive ? styleText(color, text) : text;
  }

  #erase(): string {
    return this.#block.length === 0 ? '' : `\x1b[${this.#block.length}A\r${CLEAR_BELOW}`;
  }

  #draw(): string {
    return this.#block.map((line) => `${line}\n`).join('');
  }
}
