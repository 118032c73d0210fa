import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

/** tar may close its input at the end mark, before the padding behind it. */
const ENOUGH = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE']);

export interface UnpackOptions {
  /** A tar.gz file. */
  archive: string;
  /** Exists; gets the members under their paths in the archive. */
  directory: string;
  members: readonly string[];
}

/** Takes the members, and nothing else, out of an archive, with the `tar` of the system. */
export async function unpack({ archive, directory, members }: UnpackOptions): Promise<void> {
  const child = spawn('tar', ['-x', '-f', '-', '-C', directory, ...members], { stdio: ['pipe', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [fed, exited] = await Promise.allSettled([
    pipeline(createReadStream(archive), createGunzip(), child.stdin),
    ended,
  ]);
  if (exited.status === 'rejected') throw new Error(`tar cannot be run: ${exited.reason.message}`);
  if (fed.status === 'rejected' && !ENOUGH.has(fed.reason.code)) throw fed.reason;
  const missing = await absentOf(directory, members);
  if (missing.length > 0) throw new Error(`there is no ${missing.join(', ')} in it`);
  if (exited.value[0] !== 0) throw new Error(`tar: ${errors.trim()}`);
}

async function absentOf(directory: string, members: readonly string[]): Promise<string[]> {
  const checks = members.map((member) =>
    access(join(directory, member)).then(
      () => [],
      () => [member],
    ),
  );
  return (await Promise.all(checks)).flat();
}
