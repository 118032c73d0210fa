import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AuditedRequests, renewalsOf, statusWritesOf } from '../../support/cluster/audited-requests.ts';
import { replicaOfAgent } from '../../support/cluster/cluster-recorder.ts';

const USER = 'system:serviceaccount:koupleless-system:module-controller-0';
const AT = '2026-01-01T00:00:01.250000Z';

let directory: string;
let audit: AuditedRequests;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'audited-requests-'));
  audit = new AuditedRequests(directory);
});

afterEach(async () => {
  await audit.close();
  await rm(directory, { recursive: true });
});

function event(objectRef: object | undefined, more: object = {}): string {
  const basics = {
    user: { username: USER },
    verb: 'patch',
    requestReceivedTimestamp: AT,
    responseStatus: { code: 200 },
  };
  return `${JSON.stringify({ ...basics, objectRef, ...more })}\n`;
}

const write = (text: string): Promise<void> => appendFile(join(directory, 'audit.jsonl'), text);
const NODE = { resource: 'nodes', subresource: 'status', name: 'vnode.b1' };
const MEMBER = { resource: 'leases', namespace: 'kube-node-lease', name: 'module-controller.dev.r0' };
const replicaOf = (user: string): string | undefined => (user === USER ? 'r0' : undefined);

describe('the audited requests', () => {
  it('are what service accounts wrote with success', async () => {
    await write(event(NODE));
    await write(event(NODE, { responseStatus: { code: 409 } }));
    await write(event(NODE, { verb: 'get' }));
    await write(event(NODE, { user: { username: 'admin' } }));
    await write(event(undefined, { verb: 'create' }));
    expect(await audit.read()).toEqual([
      { user: USER, verb: 'patch', resource: 'nodes/status', namespace: '', name: 'vnode.b1', at: Date.parse(AT) },
    ]);
  });

  it('are read on from where the last reading ended, in the middle of a line too', async () => {
    const line = event(NODE);
    await write(line + line.slice(0, 30));
    expect(await audit.read()).toHaveLength(1);
    await write(line.slice(30));
    expect(await audit.read()).toHaveLength(2);
  });

  it('tell status writes and renewals of memberships by replica', async () => {
    await write(event(NODE));
    await write(event({ resource: 'pods', subresource: 'status', namespace: 'default', name: 'p1' }));
    await write(event(MEMBER));
    await write(event(MEMBER, { verb: 'delete' }));
    await write(event({ ...MEMBER, name: 'vnode.b1' }));
    await write(event(MEMBER, { user: { username: 'system:serviceaccount:x:y' } }));
    const requests = await audit.read();
    const at = Date.parse(AT);
    expect(statusWritesOf(requests, replicaOf)).toEqual([
      { replica: 'r0', resource: 'nodes', name: 'vnode.b1', at },
      { replica: 'r0', resource: 'pods', name: 'p1', at },
    ]);
    expect(renewalsOf(requests, replicaOf)).toEqual([{ replica: 'r0', at }]);
  });
});

describe('the User-Agent of a command', () => {
  it('names the replica', () => {
    expect(replicaOfAgent('module-controller/0.1.0 (controller-2)')).toBe('controller-2');
    expect(replicaOfAgent('axios/1.0')).toBeUndefined();
    expect(replicaOfAgent(undefined)).toBeUndefined();
  });
});
