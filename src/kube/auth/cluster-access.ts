import { readFile } from 'node:fs/promises';
import { ControllerError, messageOf } from '../../errors.ts';

/** What a TLS connection to the API server needs; all PEM texts. */
export interface TlsSettings {
  ca?: string;
  cert?: string;
  key?: string;
  /** The name to verify the server's certificate against, when it is not the host of the URL. */
  servername?: string;
  rejectUnauthorized: boolean;
}

/** Address of the API server, and how to authenticate. Files behind it are read off the hot path. */
export interface ClusterAccess {
  readonly server: URL;
  /** A new object whenever certificates on disk have changed. */
  tls(): TlsSettings;
  /** The value of the authorization header to send now. */
  authorization(): string | undefined;
  /**
   * Reads the credential again after a 401; true when it now differs from `used`, or the certificates have changed,
   * so that one retry makes sense.
   */
  onUnauthorized(used: string | undefined): Promise<boolean>;
  /** Calls back after `tls()` has changed; connections made earlier should be replaced. */
  onTlsChange(listener: () => void): void;
  /** Reads the files again every minute until `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

/** Source of a text of the configuration; `where` names file and field for people. */
export type TextSource =
  | { readonly text: string; readonly where: string }
  | { readonly path: string; readonly where: string };

export interface PluginCredential {
  readonly authorization?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** Asks an external program for a credential; `isRejected`: the last one was answered with 401. */
export type CredentialPlugin = (isRejected: boolean) => Promise<PluginCredential>;

/** What a kubeconfig or a service account comes down to. */
export interface AccessSpec {
  readonly server: URL;
  readonly servername?: string | undefined;
  readonly isInsecure: boolean;
  readonly ca?: TextSource | undefined;
  readonly cert?: TextSource | undefined;
  readonly key?: TextSource | undefined;
  readonly token?: TextSource | undefined;
  readonly plugin?: CredentialPlugin | undefined;
}

export function configInvalid(where: string, rule: string, cause?: unknown): ControllerError {
  return new ControllerError('Kube.ConfigInvalid', `${where}: ${rule}`, cause === undefined ? {} : { cause });
}

export async function readSource(source: TextSource | undefined): Promise<string | undefined> {
  if (source === undefined) return undefined;
  if ('text' in source) return source.text;
  try {
    return await readFile(source.path, 'utf8');
  } catch (error) {
    throw configInvalid(source.where, `cannot be read: ${messageOf(error)}`, error);
  }
}
