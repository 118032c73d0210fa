import { readFile } from 'node:fs/promises';
import { ControllerError, messageOf } from '../errors.ts';

/** Where a text of the configuration comes from; `where` names file and field for people. */
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
