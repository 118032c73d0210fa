import { formatElapsed } from '../cache/progress.ts';

/** Turns what the go command prints while it builds into one line that says how far it is. */
export class BuildProgress {
  readonly #packageCount: number;
  readonly #programs: ReadonlySet<string>;
  #compiled = 0;
  #programsCompiled = 0;
  #latest = '';

  /** `packageCount`: how many packages the programs are made of, those in Go's cache included. */
  constructor({ packageCount, programs }: { packageCount: number; programs: readonly string[] }) {
    this.#packageCount = packageCount;
    this.#programs = new Set(programs);
  }

  /** One line of `go build -v`: the import path of a package that is being compiled, or a message. */
  take(line: string): void {
    if (line === '' || line.includes(' ')) return;
    this.#compiled++;
    this.#latest = line;
    if (this.#programs.has(line)) this.#programsCompiled++;
  }

  describe(elapsedMs: number): string {
    const elapsed = formatElapsed(elapsedMs);
    if (this.#programsCompiled === this.#programs.size) return `linking the programs, ${elapsed}`;
    const latest = this.#latest === '' ? '' : ` (${this.#latest})`;
    return `compiling package ${this.#compiled} of ${this.#packageCount}, ${elapsed}${latest}`;
  }
}
