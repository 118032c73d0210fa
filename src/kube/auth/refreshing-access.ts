import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type Clock, sleep } from '../../clock.ts';
import { messageOf } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import { type AccessSpec, type ClusterAccess, configInvalid, readSource, type TlsSettings } from './cluster-access.ts';

const REFRESH_INTERVAL_MS = 60_000;
/** A credential that is refused for good must not start its plugin for each request. */
const MIN_FORCED_INTERVAL_MS = 5000;

interface Snapshot {
  readonly tls: TlsSettings;
  readonly authorization: string | undefined;
}

interface RefreshingAccessOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Access whose certificates and tokens are read again: the kubelet replaces a projected token before it expires. */
export class RefreshingAccess implements ClusterAccess {
  readonly #spec: AccessSpec;
  readonly #options: RefreshingAccessOptions;
  readonly #tlsListeners: (() => void)[] = [];
  #current: Snapshot;
  /** The last reading; never rejects. */
  #refreshing: Promise<void> = Promise.resolve();
  #forcedAt = Number.NEGATIVE_INFINITY;

  private constructor(spec: AccessSpec, first: Snapshot, options: RefreshingAccessOptions) {
    this.#spec = spec;
    this.#current = first;
    this.#options = options;
  }

  /** Rejects with `Kube.ConfigInvalid` when something is missing or damaged. */
  static async open(spec: AccessSpec, options: RefreshingAccessOptions): Promise<RefreshingAccess> {
    return new RefreshingAccess(spec, await readSnapshot(spec, false), options);
  }

  get server(): URL {
    return this.#spec.server;
  }

  tls(): TlsSettings {
    return this.#current.tls;
  }

  authorization(): string | undefined {
    return this.#current.authorization;
  }

  async onUnauthorized(used: string | undefined): Promise<boolean> {
    const { clock } = this.#options;
    const { tls } = this.#current;
    if (this.#current.authorization === used && clock.now() - this.#forcedAt >= MIN_FORCED_INTERVAL_MS) {
      this.#forcedAt = clock.now();
      await this.#refresh(true);
    } else {
      await this.#refreshing;
    }
    // New certificates count as well: a plugin may give one instead of a token.
    return this.#current.authorization !== used || this.#current.tls !== tls;
  }

  onTlsChange(listener: () => void): void {
    this.#tlsListeners.push(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#options.clock, REFRESH_INTERVAL_MS, signal);
      if (!signal.aborted) await this.#refresh(false);
    }
  }

  /** One after the other: a reading that already runs may have seen the old files. */
  #refresh(isRejected: boolean): Promise<void> {
    this.#refreshing = this.#refreshing.then(() => this.#readAgain(isRejected));
    return this.#refreshing;
  }

  /** What cannot be read now stays as it was; the API server is the judge of what is out of date. */
  async #readAgain(isRejected: boolean): Promise<void> {
    try {
      const next = await readSnapshot(this.#spec, isRejected);
      const { tls } = this.#current;
      const isSameTls = next.tls.ca === tls.ca && next.tls.cert === tls.cert && next.tls.key === tls.key;
      this.#current = isSameTls ? { tls, authorization: next.authorization } : next;
      if (isSameTls) return;
      this.#options.logger.info('certificates for the API server changed');
      for (const listener of this.#tlsListeners) listener();
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'credentials for the API server could not be read again');
    }
  }
}

async function readSnapshot(spec: AccessSpec, isRejected: boolean): Promise<Snapshot> {
  const [ca, cert, key, token, plugin] = await Promise.all([
    readSource(spec.ca),
    readSource(spec.cert),
    readSource(spec.key),
    readSource(spec.token),
    spec.plugin?.(isRejected),
  ]);
  const tls: TlsSettings = { rejectUnauthorized: !spec.isInsecure };
  if (ca !== undefined && !spec.isInsecure) tls.ca = ca;
  if (spec.servername !== undefined) tls.servername = spec.servername;
  const ownCert = cert ?? plugin?.cert;
  const ownKey = key ?? plugin?.key;
  if (ownCert !== undefined) tls.cert = ownCert;
  if (ownKey !== undefined) tls.key = ownKey;
  checkTls(spec, tls);
  return { tls, authorization: authorizationOf(spec, token) ?? plugin?.authorization };
}

function authorizationOf(spec: AccessSpec, token: string | undefined): string | undefined {
  if (spec.token === undefined || token === undefined) return undefined;
  const trimmed = token.trim();
  // What a header cannot hold would fail each request with a message that quotes it.
  if (!/^[\x21-\x7e]+$/.test(trimmed)) throw configInvalid(spec.token.where, 'is not a token');
  return `Bearer ${trimmed}`;
}

/** Node ignores a CA without PEM blocks, and every request would fail instead of the start. */
function checkTls(spec: AccessSpec, tls: TlsSettings): void {
  if (tls.ca !== undefined) check(spec.ca?.where, () => new X509Certificate(tls.ca ?? ''));
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw configInvalid(spec.cert?.where ?? spec.key?.where ?? 'client certificate', 'needs both certificate and key');
  }
  if (tls.cert !== undefined) check(spec.cert?.where, () => createSecureContext(tls));
}

function check(where: string | undefined, read: () => unknown): void {
  try {
    read();
  } catch (error) {
    throw configInvalid(where ?? 'client certificate', `is not usable: ${messageOf(error)}`);
  }
}
