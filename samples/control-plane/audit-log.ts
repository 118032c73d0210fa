import { type FileHandle, open } from 'node:fs/promises';
import { stringify } from 'yaml';
import { type RequestCount, RequestCounter, type RequestCounts } from './request-counts.ts';

const LONG_RUNNING_STAGES = ['RequestReceived', 'ResponseComplete', 'Panic'];
const CHUNK_BYTES = 1 << 20;

/** Users, or members of groups. */
export type AuditedUsers = { readonly users: readonly string[] } | { readonly userGroups: readonly string[] };

/** Whether requests are counted; of some users only, which is cheaper. */
export type AuditLogOption = boolean | AuditedUsers;

/**
 * One line a request. A request that stays open (watch, logs, exec, proxy) is written when its answer begins;
 * any other when its answer is complete. One that failed authentication (401) is written too.
 * `whose`: only of these. Default: of all.
 */
export function renderAuditPolicy(whose?: AuditedUsers): string {
  // What no rule is about is not written.
  return stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitManagedFields: true,
    rules: [
      { level: 'Metadata', ...whose, verbs: ['watch', 'proxy'], omitStages: LONG_RUNNING_STAGES },
      {
        level: 'Metadata',
        ...whose,
        resources: [{ group: '', resources: ['*/proxy', '*/log', '*/exec', '*/attach', '*/portforward'] }],
        omitStages: LONG_RUNNING_STAGES,
      },
      { level: 'Metadata', ...whose, omitStages: ['RequestReceived'] },
    ],
  });
}

/** Reads what the API server has added since the last look, and keeps only the counts. */
export class AuditLog {
  readonly #path: string;
  readonly #counter = new RequestCounter();
  #file: FileHandle | undefined;
  #offset = 0;
  #partialLine: Buffer = Buffer.alloc(0);
  #reading: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /** Every request until now. */
  async read(): Promise<RequestCounts> {
    const previous = this.#reading;
    this.#reading = (async () => {
      await previous.catch(() => {}); // told to whoever asked for that read
      await this.#readOn();
    })();
    await this.#reading;
    return this.#counter.snapshot();
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  async #readOn(): Promise<void> {
    this.#file ??= await open(this.#path, 'r');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (;;) {
      const { bytesRead } = await this.#file.read(chunk, 0, CHUNK_BYTES, this.#offset);
      if (bytesRead === 0) return;
      this.#offset += bytesRead;
      this.#take(Buffer.concat([this.#partialLine, chunk.subarray(0, bytesRead)]));
    }
  }

  #take(bytes: Buffer): void {
    const end = bytes.lastIndexOf('\n') + 1;
    this.#partialLine = bytes.subarray(end);
    for (const line of bytes.toString('utf8', 0, end).split('\n')) {
      if (line !== '') this.#counter.add(parseAuditLine(line));
    }
  }
}

export function parseAuditLine(line: string): Omit<RequestCount, 'count'> {
  const event = JSON.parse(line);
  const reference = event.objectRef;
  return {
    user: event.user?.username ?? '',
    verb: event.verb,
    group: reference?.apiGroup ?? '',
    resource: reference?.resource === undefined ? pathOf(event.requestURI) : resourceOf(reference),
    code: event.responseStatus?.code ?? 0,
  };
}

const resourceOf = ({ resource, subresource }: { resource: string; subresource?: string }): string =>
  subresource === undefined ? resource : `${resource}/${subresource}`;

const pathOf = (uri: string): string => uri.split('?', 1)[0] ?? uri;
