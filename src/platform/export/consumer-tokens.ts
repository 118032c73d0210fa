import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import type { Runnable } from '../../manager.ts';

export interface ConsumerTokensOptions {
  /** Each file is named as a group, and holds its tokens, one in a line. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Shorter ones could be guessed. */
export const MIN_TOKEN_LENGTH = 32;
/** A mounted Secret changes up to a minute after the object. */
const LOOK_INTERVAL_MS = 60_000;

/** What a token is known by: the token itself is not kept. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

/** The tokens of balancers that are no users of the cluster, from a mounted Secret that is read again every minute. */
export class ConsumerTokens implements Runnable {
  readonly name = 'tokens of balancers';
  readonly #options: ConsumerTokensOptions;
  /** Groups by the digest of a token. */
  #groups: ReadonlyMap<string, ReadonlySet<string>>;

  private constructor(options: ConsumerTokensOptions, groups: ReadonlyMap<string, ReadonlySet<string>>) {
    this.#options = options;
    this.#groups = groups;
  }

  /** Rejects when the directory cannot be read, or has a token that is too short. */
  static async load(options: ConsumerTokensOptions): Promise<ConsumerTokens> {
    return new ConsumerTokens(options, await readTokens(options.directory));
  }

  /** The groups of a token; undefined for what is none. */
  groupsOf(digest: string): ReadonlySet<string> | undefined {
    return this.#groups.get(digest);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, directory, logger } = this.#options;
    while (!signal.aborted) {
      await sleep(clock, LOOK_INTERVAL_MS, signal);
      if (signal.aborted) return;
      try {
        this.#groups = await readTokens(directory);
      } catch (error) {
        logger.error({ reason: messageOf(error) }, 'tokens of balancers cannot be used: the previous ones stay in use');
      }
    }
  }
}

async function readTokens(directory: string): Promise<Map<string, Set<string>>> {
  const groups = new Map<string, Set<string>>();
  // A mounted Secret has hidden directories beside its files.
  for (const group of (await readdir(directory)).filter((name) => !name.startsWith('.'))) {
    const text = await readFile(join(directory, group), 'utf8');
    for (const token of text.split('\n').map((line) => line.trim())) {
      if (token === '') continue;
      if (token.length < MIN_TOKEN_LENGTH)
        throw new RangeError(`a token of group ${group} has fewer than ${MIN_TOKEN_LENGTH} characters`);
      const digest = digestOf(token);
      groups.set(digest, (groups.get(digest) ?? new Set()).add(group));
    }
  }
  return groups;
}
