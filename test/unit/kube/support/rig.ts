import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { ClusterAccess } from '../../../../src/kube/auth/cluster-access.ts';
import type { KubeObject } from '../../../../src/kube/objects.ts';
import type { CachedObject } from '../../../../src/kube/watch/informer-types.ts';
import type { Logger } from '../../../../src/logger.ts';

/** Access to a server without TLS; `next` is the credential that a 401 brings to light. */
export function staticAccess(server: URL, credentials: { first?: string; next?: string } = {}): ClusterAccess {
  let current = credentials.first;
  return {
    server,
    tls: () => ({ rejectUnauthorized: true }),
    authorization: () => current,
    onUnauthorized: async (used) => {
      current = credentials.next ?? current;
      return current !== used;
    },
    onTlsChange: () => {},
    run: async () => {},
  };
}

export interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A logger whose lines a test can read. */
export function capturedLogger(): { logger: Logger; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as LogLine);
      done();
    },
  });
  return { logger: pino({ level: 'trace', base: null }, stream), lines };
}

export interface CachedPod extends CachedObject {
  readonly nodeName: string | undefined;
}

export function projectPod(raw: KubeObject): CachedPod {
  const { name, namespace = '', uid = '', resourceVersion = '' } = raw.metadata;
  const { spec } = raw as { spec?: { nodeName?: string } };
  return { name, namespace, uid, resourceVersion, nodeName: spec?.nodeName };
}

export function pod(name: string, resourceVersion: number, more: { uid?: string; nodeName?: string } = {}): KubeObject {
  const metadata = { name, namespace: 'ns', uid: more.uid ?? `uid-${name}`, resourceVersion: String(resourceVersion) };
  const spec = more.nodeName === undefined ? {} : { nodeName: more.nodeName };
  return { kind: 'Pod', apiVersion: 'v1', metadata, spec } as KubeObject;
}

export const added = (object: KubeObject) => ({ type: 'ADDED', object });
export const modified = (object: KubeObject) => ({ type: 'MODIFIED', object });
export const deleted = (object: KubeObject) => ({ type: 'DELETED', object });
export const bookmark = (resourceVersion: number) => ({
  type: 'BOOKMARK',
  object: { kind: 'Pod', metadata: { resourceVersion: String(resourceVersion) } },
});
export const listEnd = (resourceVersion: number) => ({
  type: 'BOOKMARK',
  object: {
    kind: 'Pod',
    metadata: {
      resourceVersion: String(resourceVersion),
      annotations: { 'k8s.io/initial-events-end': 'true' },
    },
  },
});
export const statusOf = (code: number, reason: string, details: Record<string, unknown> = {}) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  code,
  reason,
  message: `${reason} said the server`,
  details,
});
export const errorEvent = (code: number, reason: string, details?: Record<string, unknown>) => ({
  type: 'ERROR',
  object: statusOf(code, reason, details),
});
