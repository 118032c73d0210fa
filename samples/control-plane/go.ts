import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export interface GoOptions {
  /** Of the Go module, with its `go.mod` and `go.sum`. */
  directory: string;
  /** What to do on a machine without Go, besides to install it; completes the sentence "install Go, or …". */
  otherwise: string;
  onErrorLine?: (line: string) => void;
}

const KEPT_LINES = 25;

/** Runs the go command; resolves with the lines of its standard output. */
export async function runGo(
  args: string[],
  { directory, otherwise, onErrorLine = () => {} }: GoOptions,
): Promise<string[]> {
  // The user's settings for proxies and caches count; those that would build something else do not.
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GOWORK: 'off', GOOS: '', GOARCH: '' };
  const child = spawn('go', args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  const errors: string[] = [];
  createInterface(child.stdout).on('line', (line) => output.push(line));
  createInterface(child.stderr).on('line', (line) => {
    onErrorLine(line);
    errors.push(line);
  });
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve)).catch(
    (error: unknown) => {
      const words = 'there is no "go" on the PATH: install Go 1.25 or newer (https://go.dev/doc/install)';
      throw new Error(`${words}, or ${otherwise}`, { cause: error });
    },
  );
  if (code !== 0) {
    throw new Error(`go ${args[0]} failed with exit code ${code}:\n${errors.slice(-KEPT_LINES).join('\n')}`);
  }
  return output;
}
