import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** A directory of kubeconfigs and the files they name. */
export class KubeconfigDir {
  readonly path = mkdtempSync(join(tmpdir(), 'kubeconfig-'));

  write(name: string, content: string): string {
    const path = join(this.path, name);
    writeFileSync(path, content);
    return path;
  }

  /** A kubeconfig with one context of everything; fields overwrite or, when undefined, leave out. */
  config(name: string, fields: { cluster?: object; user?: object; document?: object } = {}): string {
    const document = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'main',
      contexts: [{ name: 'main', context: { cluster: 'home', user: 'admin' } }],
      clusters: [{ name: 'home', cluster: { server: 'https://10.0.0.1:6443', ...fields.cluster } }],
      users: [{ name: 'admin', user: { ...fields.user } }],
      ...fields.document,
    };
    return this.write(name, stringify(document));
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}
