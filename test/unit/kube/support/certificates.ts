import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority that lives as long as a test file. */
export class TestAuthority {
  readonly #directory = mkdtempSync(join(tmpdir(), 'kube-ca-'));
  readonly ca: string;

  constructor() {
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    this.#openssl([...args, '-subj', '/CN=test-ca', '-keyout', 'ca.key', '-out', 'ca.crt']);
    this.ca = this.#read('ca.crt');
  }

  /** `names` as in a subjectAltName: `DNS:kubernetes`, `IP:127.0.0.1`. */
  issue(commonName: string, names: string): Identity {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'one.key'];
    this.#openssl(['req', ...key, '-subj', `/CN=${commonName}`, '-out', 'one.csr']);
    writeFileSync(join(this.#directory, 'one.ext'), `subjectAltName=${names}\n`);
    const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'one.ext'];
    this.#openssl(['x509', '-req', '-in', 'one.csr', ...signing, '-out', 'one.crt']);
    return { cert: this.#read('one.crt'), key: this.#read('one.key') };
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }

  #openssl(args: string[]): void {
    execFileSync('openssl', args, { cwd: this.#directory, stdio: 'pipe' });
  }

  #read(name: string): string {
    return readFileSync(join(this.#directory, name), 'utf8');
  }
}
