import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';

export interface TokenFilesOptions {
  /** Each file is named as whose tokens it holds, one in a line. */
  readonly directory: string;
  /** What the files are named as, for messages: such as `group`. */
  readonly owner: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Shorter ones could be guessed. */
export const MIN_TOKEN_LENGTH = 32;
/** A mounted Secret changes up to a minute after the object. */
const LOOK_INTERVAL_MS = 60_000;

/** Tokens of clients that are no users of the cluster, from a mounted Secret that is read again every minute. */
export class TokenFiles implements Runnable {
  readonly name: string;
  readonly #options: TokenFilesOptions;
  /** Names of files by the digest of a token. */
  #names: ReadonlyMap<string, ReadonlySet<string>>;

  private constructor(options: TokenFilesOptions, names: ReadonlyMap<string, ReadonlySet<string>>) {
    this.name = `tokens of each ${options.owner}`;
    this.#options = options;
    this.#names = names;
  }

  /** Rejects when the directory cannot be read, or has a token that is too short. */
  static async load(options: TokenFilesOptions): Promise<TokenFiles> {
    return new TokenFiles(options, await readTokens(options));
  }

  /** The files that have a token; undefined: none has. */
  namesOf(token: string): ReadonlySet<string> | undefined {
    return this.#names.get(digestOf(token));
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, owner, logger } = this.#options;
    while (!signal.aborted) {
      await sleep(clock, LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return;
      try {
        this.#names = await readTokens(this.#options);
      } catch (error) {
        logger.error({ owner, reason: messageOf(error) }, 'tokens cannot be used: the previous ones stay in use');
      }
    }
  }
}

/** The tokens themselves are not kept. */
function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

async function readTokens({ directory, owner }: TokenFilesOptions): Promise<Map<string, Set<string>>> {
  const names = new Map<string, Set<string>>();
  // A mounted Secret has hidden directories beside its files.
  for (const name of (await readdir(directory)).filter((one) => !one.startsWith('.'))) {
    const text = await readFile(join(directory, name), 'utf8');
    for (const token of text.split('\n').map((line) => line.trim())) {
      if (token === '') continue;
      if (token.length < MIN_TOKEN_LENGTH)
        throw new RangeError(`a token of ${owner} ${name} has fewer than ${MIN_TOKEN_LENGTH} characters`);
      const digest = digestOf(token);
      names.set(digest, (names.get(digest) ?? new Set()).add(name));
    }
  }
  return names;
}
