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
  /** Whether a file can be one of an owner. Default: any can. */
  readonly isOwner?: (name: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Shorter ones could be guessed. */
export const MIN_TOKEN_LENGTH = 32;
/** A mounted Secret changes up to a minute after the object. */
const LOOK_INTERVAL_MS = 60_000;

/**
 * Tokens of clients that are no users of the cluster, from a mounted Secret that is read again every minute. A token that
 * cannot be used is left out and logged, and all others count.
 */
export class TokenFiles implements Runnable {
  readonly name: string;
  readonly #options: TokenFilesOptions;
  /** Names of files by the digest of a token. */
  #names: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  /** What was logged last. */
  #faults = '';

  private constructor(options: TokenFilesOptions) {
    this.name = `tokens of each ${options.owner}`;
    this.#options = options;
  }

  /** Rejects when the directory cannot be read. */
  static async load(options: TokenFilesOptions): Promise<TokenFiles> {
    const files = new TokenFiles(options);
    await files.#read();
    return files;
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
        await this.#read();
      } catch (error) {
        logger.error({ owner, reason: messageOf(error) }, 'tokens cannot be read: the previous ones stay in use');
      }
    }
  }

  async #read(): Promise<void> {
    const { owner, logger } = this.#options;
    const { names, faults } = await readTokens(this.#options);
    this.#names = names;
    const text = faults.join('; ');
    if (text !== '' && text !== this.#faults) logger.error({ owner, faults }, 'tokens are left out');
    this.#faults = text;
  }
}

/** The tokens themselves are not kept. */
function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

interface Tokens {
  readonly names: ReadonlyMap<string, ReadonlySet<string>>;
  readonly faults: readonly string[];
}

async function readTokens({ directory, owner, isOwner = () => true }: TokenFilesOptions): Promise<Tokens> {
  const names = new Map<string, Set<string>>();
  const faults: string[] = [];
  // A mounted Secret has hidden directories beside its files.
  for (const name of (await readdir(directory)).filter((one) => !one.startsWith('.')).sort()) {
    if (!isOwner(name)) {
      faults.push(`${name} is not the name of a ${owner}`);
      continue;
    }
    const tokens = (await readFile(join(directory, name), 'utf8')).split('\n').map((line) => line.trim());
    for (const token of tokens.filter((one) => one !== '')) {
      const digest = digestOf(token);
      if (token.length < MIN_TOKEN_LENGTH)
        faults.push(`a token of ${owner} ${name} has fewer than ${MIN_TOKEN_LENGTH} characters`);
      else names.set(digest, (names.get(digest) ?? new Set()).add(name));
    }
  }
  return { names, faults };
}
