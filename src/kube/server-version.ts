import { type Clock, sleep } from '../clock.ts';
import type { Logger } from '../logger.ts';
import { get, type RequestLane } from './requests.ts';

/** The one that the tests run on; shown until the API server has named its own. */
const TESTED_VERSION = 'v1.35.4';
/** A cluster is upgraded while this process runs. */
const READ_EVERY_MS = 600_000;

export interface ServerVersionOptions {
  readonly lane: RequestLane;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The version of the API server, from `GET /version`, which every account may read. */
export class ServerVersion {
  readonly #options: ServerVersionOptions;
  readonly #wasRead = Promise.withResolvers<void>();
  #current = TESTED_VERSION;

  constructor(options: ServerVersionOptions) {
    this.#options = options;
  }

  /** Version of the API server without what a distribution adds: `v1.35.4`. */
  get current(): string {
    return this.#current;
  }

  /** Resolves after the first answer, whatever it was. */
  whenReady(): Promise<void> {
    return this.#wasRead.promise;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#read();
      this.#wasRead.resolve();
      await sleep(this.#options.clock, READ_EVERY_MS, signal);
    }
  }

  async #read(): Promise<void> {
    const { lane, logger } = this.#options;
    try {
      const { gitVersion } = await get<{ readonly gitVersion?: unknown }>(lane, '/version');
      const [version] = /^v\d+\.\d+\.\d+/.exec(String(gitVersion)) ?? [];
      if (version === undefined) logger.warn({ gitVersion }, 'version of the API server not understood');
      else this.#current = version;
    } catch (error) {
      logger.warn({ err: error }, 'version of the API server not read');
    }
  }
}
