import { type FileHandle, open } from 'node:fs/promises';
import { layoutOf } from '../../../samples/control-plane/layout.ts';
import { MEMBER_LEASE_PREFIX } from '../../../src/lease/member.ts';
import type { RenewalFact, StatusWriteFact } from './facts.ts';

const CHUNK_BYTES = 1 << 20;
const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete']);

/** A write that the API server has done. */
export interface AuditedRequest {
  readonly user: string;
  readonly verb: string;
  /** With its subresource: `pods/status`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** Wall clock, ms, when it was received. */
  readonly at: number;
}

/** Reads from the control plane's audit log what service accounts have written with success. */
export class AuditedRequests {
  readonly #path: string;
  readonly #requests: AuditedRequest[] = [];
  #file: FileHandle | undefined;
  #offset = 0;
  #partialLine: Buffer = Buffer.alloc(0);

  /** `directory`: that of the control plane. */
  constructor(directory: string) {
    this.#path = layoutOf(directory).auditLog;
  }

  /** All until now. */
  async read(): Promise<readonly AuditedRequest[]> {
    this.#file ??= await open(this.#path, 'r');
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const { bytesRead } = await this.#file.read(chunk, 0, CHUNK_BYTES, this.#offset);
      if (bytesRead === 0) return this.#requests;
      this.#offset += bytesRead;
      this.#take(Buffer.concat([this.#partialLine, chunk.subarray(0, bytesRead)]));
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  #take(bytes: Buffer): void {
    const end = bytes.lastIndexOf('\n') + 1;
    this.#partialLine = bytes.subarray(end);
    for (const line of bytes.toString('utf8', 0, end).split('\n')) {
      const request = line.includes('system:serviceaccount:') ? parseWrite(line) : undefined;
      if (request) this.#requests.push(request);
    }
  }
}

/** undefined for what is no write, or was refused. */
export function parseWrite(line: string): AuditedRequest | undefined {
  const { user, verb, objectRef, responseStatus, requestReceivedTimestamp } = JSON.parse(line);
  if (!WRITES.has(verb) || objectRef === undefined || !(responseStatus?.code < 300)) return undefined;
  const { resource, subresource, namespace = '', name = '' } = objectRef;
  return {
    user: user.username,
    verb,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    at: Date.parse(requestReceivedTimestamp),
  };
}

type ReplicaOfUser = (user: string) => string | undefined;

export function statusWritesOf(requests: readonly AuditedRequest[], replicaOf: ReplicaOfUser): StatusWriteFact[] {
  return requests.flatMap(({ user, resource, name, at }): StatusWriteFact[] => {
    const replica = replicaOf(user);
    const [kind, subresource] = resource.split('/');
    if (replica === undefined || subresource !== 'status' || (kind !== 'nodes' && kind !== 'pods')) return [];
    return [{ replica, resource: kind, name, at }];
  });
}

/** Whether that is the name of a membership Lease. */
export function isMemberLease(name: string): boolean {
  return name.startsWith(MEMBER_LEASE_PREFIX);
}

/** Writes of a replica to its own membership Lease. */
export function renewalsOf(requests: readonly AuditedRequest[], replicaOf: ReplicaOfUser): RenewalFact[] {
  return requests.flatMap(({ user, verb, resource, name, at }): RenewalFact[] => {
    const replica = replicaOf(user);
    const isRenewal = resource === 'leases' && isMemberLease(name) && verb !== 'delete';
    return replica !== undefined && isRenewal ? [{ replica, at }] : [];
  });
}
