import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { formatElapsed, REPORT_EVERY_MS } from '../cache/progress.ts';

const KEPT_LINES = 25;

export interface MavenOptions {
  directory: string;
  args: readonly string[];
  /** What is being built, for the reader of `onProgress`. */
  what: string;
  onProgress: (line: string) => void;
}

/** Runs Maven to its end; throws with the end of its output when it fails, or says what is not installed. */
export async function runMaven({ directory, args, what, onProgress }: MavenOptions): Promise<void> {
  const startedAt = performance.now();
  const progress = new MavenProgress();
  const reporter = setInterval(
    () => onProgress(`building ${what}: ${progress.describe()}, ${formatElapsed(performance.now() - startedAt)}`),
    REPORT_EVERY_MS,
  );
  const lines: string[] = [];
  try {
    const child = spawn('mvn', ['--batch-mode', ...args], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', (line) => {
        progress.take(line);
        if (!isDownload(line)) lines.push(line);
        if (lines.length > KEPT_LINES) lines.shift();
      });
    }
    const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve)).catch(
      explainMissingMaven,
    );
    if (code !== 0) throw new Error(`mvn ${args.join(' ')} failed with exit code ${code}:\n${lines.join('\n')}`);
  } finally {
    clearInterval(reporter);
  }
}

/** Turns what Maven prints into a few words that say how far it is. */
export class MavenProgress {
  #downloads = 0;
  #project = '';

  take(line: string): void {
    if (/^(\[INFO\] )?Downloaded from /.test(line)) this.#downloads++;
    this.#project = /^\[INFO\] Building (\S+) .*\[\d+\/\d+\]$/.exec(line)?.[1] ?? this.#project;
  }

  describe(): string {
    const at = this.#project === '' ? 'starting Maven' : `at ${this.#project}`;
    return this.#downloads === 0 ? at : `${at}, ${this.#downloads} files downloaded`;
  }
}

function isDownload(line: string): boolean {
  return /^(\[INFO\] )?Download(ing|ed) from |^Progress /.test(line);
}

function explainMissingMaven(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ENOENT') throw error;
  throw new Error(
    'there is no "mvn" on the PATH: install a JDK 17 or newer and Maven 3.8 or newer ' +
      '(Debian, Ubuntu: apt-get install openjdk-17-jdk-headless maven)',
    { cause: error },
  );
}
