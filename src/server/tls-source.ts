import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { type Clock, sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Runnable } from '../manager.ts';
import type { Metrics } from '../metrics.ts';

/** A certificate with its chain, and its key; both in PEM. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/** What a server identifies itself with; it may change while the server runs. */
export interface TlsSource {
  current(): TlsPair;
  onChange(listener: (pair: TlsPair) => void): void;
}

export interface TlsFilesOptions {
  readonly certPath: string;
  readonly keyPath: string;
  /** In metrics and logs. */
  readonly name: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'certificateReloads'>;
}

/** A mounted Secret changes at once by a symlink, up to a minute after the object: another minute costs nothing. */
const LOOK_INTERVAL_MS = 60_000;

/**
 * A pair of files that is read again every minute. A pair that cannot be used is reported, and the former one stays.
 */
export class TlsFiles implements TlsSource, Runnable {
  readonly name: string;
  readonly #options: TlsFilesOptions;
  readonly #listeners: ((pair: TlsPair) => void)[] = [];
  #pair: TlsPair;
  /** What was refused last: it is reported once. */
  #refused: TlsPair | undefined;

  private constructor(options: TlsFilesOptions, pair: TlsPair) {
    this.name = `certificate of ${options.name}`;
    this.#options = options;
    this.#pair = pair;
    for (const result of ['ok', 'error']) options.metrics.certificateReloads.inc({ server: options.name, result }, 0);
  }

  /** Rejects when the files cannot be read, or are no pair. */
  static async load(options: TlsFilesOptions): Promise<TlsFiles> {
    const pair = await readPair(options);
    checkPair(pair);
    return new TlsFiles(options, pair);
  }

  current(): TlsPair {
    return this.#pair;
  }

  onChange(listener: (pair: TlsPair) => void): void {
    this.#listeners.push(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#options.clock, LOOK_INTERVAL_MS, signal);
      if (!signal.aborted) await this.#look();
    }
  }

  async #look(): Promise<void> {
    const { name, logger, metrics } = this.#options;
    let pair: TlsPair | undefined;
    try {
      pair = await readPair(this.#options);
      if (isSame(pair, this.#pair) || isSame(pair, this.#refused)) return;
      checkPair(pair);
    } catch (error) {
      this.#refused = pair;
      metrics.certificateReloads.inc({ server: name, result: 'error' });
      logger.error(
        { server: name, reason: messageOf(error) },
        'certificate cannot be used: the previous one stays in use',
      );
      return;
    }
    this.#pair = pair;
    this.#refused = undefined;
    metrics.certificateReloads.inc({ server: name, result: 'ok' });
    logger.info({ server: name }, 'certificate replaced');
    for (const listener of this.#listeners) listener(pair);
  }
}

async function readPair({ certPath, keyPath }: TlsFilesOptions): Promise<TlsPair> {
  const [cert, key] = await Promise.all([readFile(certPath, 'utf8'), readFile(keyPath, 'utf8')]);
  return { cert, key };
}

/** Throws when either is none, or the key is of another certificate: half of a change may have been read. */
function checkPair(pair: TlsPair): void {
  createSecureContext({ ...pair });
}

function isSame(pair: TlsPair, other: TlsPair | undefined): boolean {
  return pair.cert === other?.cert && pair.key === other.key;
}
