import { spawn } from 'node:child_process';

export interface Check {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The output of one check may appear at once. The output of the others is shown when they end. */
  readonly isLive?: boolean;
}

export interface Outcome {
  readonly name: string;
  readonly hasPassed: boolean;
  readonly seconds: number;
}

/** Runs all checks at the same time. Each runs to its end, whatever the others find. */
export function sideBySide(checks: readonly Check[], write: (text: string) => void): Promise<Outcome[]> {
  return Promise.all(checks.map((check) => run(check, write)));
}

/** One line for each check. */
export function summaryOf(outcomes: readonly Outcome[]): string {
  return outcomes
    .map(({ name, hasPassed, seconds }) => `${hasPassed ? 'passed' : 'FAILED'}  ${name}, ${seconds} s\n`)
    .join('');
}

function run({ name, command, args, isLive }: Check, write: (text: string) => void): Promise<Outcome> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const output: Buffer[] = [];
    const child = spawn(command, args, { stdio: isLive ? 'inherit' : ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => output.push(data));
    child.on('error', (error) => output.push(Buffer.from(`${error.message}\n`)));
    // Comes after an error too.
    child.on('close', (code) => {
      const text = Buffer.concat(output).toString();
      if (text !== '') write(`${name}:\n${text}`);
      resolve({ name, hasPassed: code === 0, seconds: Math.round((performance.now() - startedAt) / 1000) });
    });
  });
}
