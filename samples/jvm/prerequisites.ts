import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { firstExternalAddress } from '../base-simulator/external-address.ts';

const run = promisify(execFile);

/** Throws, and says what to do, where this machine cannot run JVMs as bases. Takes seconds at most. */
export async function checkPrerequisites(): Promise<void> {
  const missing = [
    ...(await missingProgram('javac', ['-version'], 'a JDK 17 or newer (Debian, Ubuntu: openjdk-17-jdk-headless)')),
    ...(await missingProgram('mvn', ['--version'], 'Maven 3.8 or newer (Debian, Ubuntu: maven)')),
    ...(firstExternalAddress().startsWith('127.')
      ? ['an IPv4 address that is not loopback, since Kubernetes takes no other for a Pod: connect it to some network']
      : []),
  ];
  if (missing.length > 0) throw new Error(`this machine lacks ${missing.join('; and ')}`);
}

async function missingProgram(program: string, args: readonly string[], what: string): Promise<string[]> {
  return run(program, args).then(
    () => [],
    () => [what],
  );
}
