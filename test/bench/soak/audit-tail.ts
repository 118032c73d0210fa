import { type FileHandle, open, stat } from 'node:fs/promises';
import { type AuditedRequest, parseWrite } from '../../support/cluster/audited-requests.ts';

const CHUNK_BYTES = 1 << 20;

/** Of the API server: what is older is thrown away, or a night of requests would fill the disk. */
export const ROTATING_AUDIT = ['--audit-log-maxsize=200', '--audit-log-maxbackup=1'];

/** Reads the writes of some service accounts from an audit log that is renamed when it is full; keeps none of them. */
export class AuditTail {
  readonly #path: string;
  /** In each line of them. */
  readonly #sign: string;
  #file: FileHandle | undefined;
  #offset = 0;
  #partialLine: Buffer = Buffer.alloc(0);

  /** `namespace`: of the accounts. */
  constructor(path: string, namespace: string) {
    this.#path = path;
    this.#sign = `"system:serviceaccount:${namespace}:`;
  }

  /** Those since the last call. */
  async take(): Promise<AuditedRequest[]> {
    const requests: AuditedRequest[] = [];
    do await this.#readOn(requests);
    while (await this.#isFollowed());
    return requests;
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #readOn(into: AuditedRequest[]): Promise<void> {
    this.#file ??= await open(this.#path, 'r');
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const { bytesRead } = await this.#file.read(chunk, 0, CHUNK_BYTES, this.#offset);
      if (bytesRead === 0) return;
      this.#offset += bytesRead;
      const bytes = Buffer.concat([this.#partialLine, chunk.subarray(0, bytesRead)]);
      const end = bytes.lastIndexOf('\n') + 1;
      this.#partialLine = bytes.subarray(end);
      for (const line of bytes.toString('utf8', 0, end).split('\n')) {
        const request = line.includes(this.#sign) ? parseWrite(line) : undefined;
        if (request) into.push(request);
      }
    }
  }

  /** Another file has its name: this one was read to its end after that. */
  async #isFollowed(): Promise<boolean> {
    const file = this.#file;
    if (!file) return false;
    const [own, named] = await Promise.all([file.stat(), stat(this.#path).catch(() => undefined)]);
    if (named === undefined || named.ino === own.ino) return false;
    // What was written between our last look and the new name.
    if (own.size > this.#offset) return true;
    await file.close();
    this.#file = undefined;
    this.#offset = 0;
    this.#partialLine = Buffer.alloc(0);
    return true;
  }
}
