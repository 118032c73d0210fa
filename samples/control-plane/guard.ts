import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

/** The directory to remove, and then the program with its arguments. */
const SCRIPT = `directory=$1
shift
"$@" 2>&1 &
exec >/dev/null 2>&1
while read -r signal; do kill "-$signal" $!; done
kill -KILL $!
wait
[ -z "$directory" ] || rm -rf "$directory"`;

/**
 * Starts a program that ends with us: Node cannot ask Linux for that, so a shell stands between. It sends the program
 * each signal that is written to its input, a name such as TERM in a line; when its input ends, by us or because we are
 * gone, it kills the program and removes `removing`. Only the program holds the output, so that its end is seen.
 */
export function spawnGuarded(
  program: string,
  args: readonly string[],
  { removing = '', env = process.env }: { removing?: string; env?: NodeJS.ProcessEnv } = {},
): ChildProcessWithoutNullStreams {
  // With a session of its own: a terminal's Ctrl-C is for us, and we end the guard.
  const guard = spawn('/bin/sh', ['-c', SCRIPT, 'guard', removing, program, ...args], { detached: true, env });
  guard.stdin.on('error', () => {}); // it may be gone by itself
  return guard;
}
