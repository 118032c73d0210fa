import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { formatElapsed, REPORT_EVERY_MS } from '../cache/progress.ts';
import type { Archive } from './archives.ts';
import { type FetchTimeouts, fetchFile } from './fetch-file.ts';
import { type FillOptions, fillCache } from './fill-cache.ts';
import { unpack } from './unpack.ts';

export interface DownloadOptions extends FillOptions {
  archives: readonly Archive[];
  /** Takes the place of the base URL of every archive. Default: where each project publishes. */
  mirror?: string | undefined;
  timeouts?: FetchTimeouts;
}

/** Downloads into the cache, or waits for another process that is at it. */
export async function downloadIntoCache(options: DownloadOptions): Promise<void> {
  await fillCache(options, async (directory) => {
    for (const archive of options.archives) await takeArchive(archive, directory, options);
  });
}

export function urlOf({ baseUrl, path }: Archive, mirror?: string): string {
  return `${(mirror || baseUrl).replace(/\/+$/, '')}/${path}`;
}

async function takeArchive(
  archive: Archive,
  directory: string,
  { mirror, onProgress, timeouts = {} }: DownloadOptions,
): Promise<void> {
  const url = urlOf(archive, mirror);
  const file = join(directory, 'download');
  const unpacked = join(directory, 'unpacked');
  onProgress(`downloading ${url}`);
  await fetchFile({ url, path: file, sum: archive.sum, timeouts, onBytes: reporter(archive, onProgress) });
  onProgress(`unpacking ${basename(archive.path)}`);
  const programs = Object.entries(archive.programs);
  await mkdir(unpacked);
  try {
    await unpack({ archive: file, directory: unpacked, members: programs.map(([, member]) => member) });
  } catch (error) {
    throw new Error(`${url}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
  for (const [name, member] of programs) {
    await chmod(join(unpacked, member), 0o755);
    await rename(join(unpacked, member), join(directory, name));
  }
  await Promise.all([file, unpacked].map((path) => rm(path, { recursive: true })));
}

/** A line each few seconds. */
function reporter(archive: Archive, onProgress: (line: string) => void) {
  const startedAt = performance.now();
  let lastAt = startedAt;
  return (receivedBytes: number, totalBytes: number | undefined): void => {
    const now = performance.now();
    if (now - lastAt < REPORT_EVERY_MS) return;
    lastAt = now;
    const amount = describeAmount(receivedBytes, totalBytes);
    onProgress(`downloading ${basename(archive.path)}: ${amount}, ${formatElapsed(now - startedAt)}`);
  };
}

/** `120 of 396 MB (30 %)`; `120 MB` when the whole is not known. */
export function describeAmount(receivedBytes: number, totalBytes: number | undefined): string {
  const megabytes = (bytes: number) => Math.round(bytes / 1e6);
  if (totalBytes === undefined) return `${megabytes(receivedBytes)} MB`;
  const percent = Math.floor((receivedBytes / totalBytes) * 100);
  return `${megabytes(receivedBytes)} of ${megabytes(totalBytes)} MB (${percent} %)`;
}
