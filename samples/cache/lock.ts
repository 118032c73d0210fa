import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** What the lock file says about its holder. */
export interface LockHolder {
  token: string;
  host: string;
  pid: number;
}

export interface LockObservation {
  /** Undefined when the file cannot be read as one: its writer died between creating and filling it. */
  holder: LockHolder | undefined;
  /** Since the holder last touched the file. */
  ageMs: number;
  thisHost: string;
  isAlive: (pid: number) => boolean;
}

const TOUCH_EVERY_MS = 5_000;
/** Covers a process id that another program got, a holder on another machine that shares the disk, and a torn file. */
const STALE_AFTER_MS = 60_000;
const LOOK_EVERY_MS = 500;

/** Whether the holder can no longer be at work. */
export function isStale({ holder, ageMs, thisHost, isAlive }: LockObservation): boolean {
  if (ageMs > STALE_AFTER_MS) return true;
  return holder !== undefined && holder.host === thisHost && !isAlive(holder.pid);
}

export interface LockOptions {
  path: string;
  /** Called before each look while someone else holds the lock; returns true to give up waiting for it. */
  isDone: () => Promise<boolean>;
  onWait: (holder: LockHolder | undefined) => void;
}

/**
 * Runs `work` while no other process of this machine does; undefined when `isDone` came true while waiting for it.
 * A killed holder leaves its file behind, and the next one takes it over.
 */
export async function withLock<T>(options: LockOptions, work: () => Promise<T>): Promise<T | undefined> {
  await mkdir(dirname(options.path), { recursive: true });
  const token = randomUUID();
  for (;;) {
    if (await options.isDone()) return undefined;
    if (await tryAcquire(options.path, token)) break;
    const holder = await readHolder(options.path);
    if (await observeStale(options.path, holder)) {
      await takeAway(options.path, holder?.token);
    } else {
      options.onWait(holder);
      await delay(LOOK_EVERY_MS);
    }
  }
  const toucher = setInterval(() => void touch(options.path), TOUCH_EVERY_MS);
  try {
    return (await options.isDone()) ? undefined : await work();
  } finally {
    clearInterval(toucher);
    if ((await readHolder(options.path))?.token === token) await rm(options.path, { force: true });
  }
}

async function tryAcquire(path: string, token: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx');
    await file.writeFile(JSON.stringify({ token, host: hostname(), pid: process.pid } satisfies LockHolder));
    await file.close();
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

async function observeStale(path: string, holder: LockHolder | undefined): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined) return false; // just released
  return isStale({ holder, ageMs: Date.now() - stats.mtimeMs, thisHost: hostname(), isAlive });
}

/**
 * Two that wait may both find the lock stale; the slower one must not remove what the faster one has made since.
 * So it is moved aside first and looked at again; a living one is put back.
 */
async function takeAway(path: string, staleToken: string | undefined): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    throw error;
  }
  if ((await readHolder(aside))?.token === staleToken) await rm(aside);
  else await rename(aside, path);
}

async function readHolder(path: string): Promise<LockHolder | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return undefined; // gone, or not yet written
  }
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => {}); // taken away: the cache is renamed into place, so nothing breaks
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasCode(error, 'ESRCH');
  }
}

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
