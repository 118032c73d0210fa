import { type Clock, sleep } from '../clock.ts';
import { messageOf } from '../errors.ts';
import { CRDS, type Crd, installCrd } from '../kube/crds.ts';
import type { Resources } from '../kube/resource.ts';
import { isRetriable } from '../kube/transport/api-error.ts';
import type { Logger } from '../logger.ts';
import { aborted } from '../manager.ts';
import { type BackoffOptions, backoffMs } from '../queue/backoff.ts';

export interface CrdInstallerOptions {
  readonly crds: readonly Crd[];
  readonly resources: Pick<Resources, 'of'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** After an API server that was away or busy. */
const RETRY_MS = 2_000;
/**
 * After a refusal. Right after its start an API server refuses everything for seconds; else a refusal lasts until
 * somebody grants a right or removes another CRD.
 */
const REFUSED: BackoffOptions = { baseMs: 2_000, maxMs: 30_000 };

interface Pending {
  readonly crd: Crd;
  readonly installed: PromiseWithResolvers<void>;
  /** Why the last try failed. */
  failure: string | undefined;
  isInstalled: boolean;
}

/**
 * Installs the CRDs of a process, each for itself. One that cannot be installed is tried again for ever: only what
 * needs it waits.
 */
export class CrdInstaller {
  readonly #options: CrdInstallerOptions;
  /** State of each CRD, by its name. */
  readonly #pending: ReadonlyMap<string, Pending>;

  constructor(options: CrdInstallerOptions) {
    this.#options = options;
    this.#pending = new Map(
      options.crds.map((crd) => [
        crd.metadata.name,
        { crd, installed: Promise.withResolvers<void>(), failure: undefined, isInstalled: false },
      ]),
    );
  }

  /** Resolves when the API server serves the CRD; undefined for one that this process does not install. */
  whenInstalled(name: string): Promise<void> | undefined {
    return this.#pending.get(name)?.installed.promise;
  }

  /** Readiness checks, by `CRD {name}`: what stands against an installation, if anything does. */
  readiness(): Record<string, boolean | string> {
    const entries = [...this.#pending].map(([name, { isInstalled, failure }]) => [
      `CRD ${name}`,
      isInstalled || (failure ?? false),
    ]);
    return Object.fromEntries(entries);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#pending.values()].map((pending) => this.#install(pending, signal)));
    await aborted(signal);
  }

  async #install(pending: Pending, signal: AbortSignal): Promise<void> {
    const { resources, clock, logger } = this.#options;
    const client = resources.of<Crd>(CRDS);
    let refusals = 0;
    while (!signal.aborted) {
      try {
        await installCrd(pending.crd, { client, clock, logger }, signal);
        pending.isInstalled = true;
        pending.installed.resolve();
        return;
      } catch (error) {
        if (signal.aborted) return;
        pending.failure = messageOf(error);
        const isTransient = isRetriable(error);
        const level = isTransient ? 'warn' : 'error';
        const fields = { crd: pending.crd.metadata.name, reason: pending.failure };
        logger[level](fields, 'CRD not installed: its controller waits, and it is tried again');
        if (!isTransient) refusals++;
        await sleep(clock, isTransient ? RETRY_MS : backoffMs(refusals, REFUSED), signal);
      }
    }
  }
}
