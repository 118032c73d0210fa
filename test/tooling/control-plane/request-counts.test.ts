import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { AuditLog, parseAuditLine, renderAuditPolicy } from '../../../samples/control-plane/audit-log.ts';
import { RequestCounter } from '../../../samples/control-plane/request-counts.ts';

const podStatusPatch = { user: 'vk', verb: 'patch', group: '', resource: 'pods/status', code: 200 };
const podWatch = { user: 'vk', verb: 'watch', group: '', resource: 'pods', code: 200 };

const auditLine = (event: Record<string, unknown>) => `${JSON.stringify({ stage: 'ResponseComplete', ...event })}\n`;
const podGet = (username: string, code: number) =>
  auditLine({
    verb: 'get',
    user: { username },
    requestURI: '/api/v1/namespaces/default/pods/x',
    objectRef: { resource: 'pods', namespace: 'default', name: 'x', apiVersion: 'v1' },
    responseStatus: { code },
  });

describe('RequestCounts', () => {
  const counter = new RequestCounter();
  counter.add(podStatusPatch);
  counter.add(podStatusPatch);
  counter.add({ ...podStatusPatch, code: 409 });
  counter.add(podWatch);
  const counts = counter.snapshot();

  it.each([
    [{}, 4],
    [{ resource: 'pods/status' }, 3],
    [{ resource: 'pods' }, 1],
    [{ code: 409 }, 1],
    [{ verb: 'patch', code: 200 }, 2],
    [{ verb: 'get' }, 0],
    [{ user: 'other' }, 0],
  ])('counts %o as %i', (filter, expected) => {
    expect(counts.count(filter)).toBe(expected);
  });

  it('lists the most frequent first', () => {
    expect(counts.entries({ verb: 'patch' })).toEqual([
      { ...podStatusPatch, count: 2 },
      { ...podStatusPatch, code: 409, count: 1 },
    ]);
  });

  it('subtracts a mark, and leaves the mark as it was', () => {
    counter.add(podWatch);
    expect(counter.snapshot().since(counts).entries()).toEqual([{ ...podWatch, count: 1 }]);
    expect(counts.count(podWatch)).toBe(1);
  });
});

describe('parseAuditLine', () => {
  it('joins resource and subresource and keeps the group', () => {
    const line = auditLine({
      verb: 'patch',
      user: { username: 'vk' },
      requestURI: '/apis/apps/v1/namespaces/default/deployments/d/scale',
      objectRef: { resource: 'deployments', subresource: 'scale', apiGroup: 'apps' },
      responseStatus: { code: 200 },
    });
    expect(parseAuditLine(line)).toEqual({
      user: 'vk',
      verb: 'patch',
      group: 'apps',
      resource: 'deployments/scale',
      code: 200,
    });
  });

  it('takes the path of a request that is for no resource, and no user of one that was not authenticated', () => {
    const line = auditLine({ verb: 'get', user: {}, requestURI: '/readyz?verbose', responseStatus: { code: 401 } });
    expect(parseAuditLine(line)).toEqual({ user: '', verb: 'get', group: '', resource: '/readyz', code: 401 });
  });
});

describe('the audit policy', () => {
  it('writes a request that stays open at its beginning, and any other at its end', () => {
    const [watches, , others] = parse(renderAuditPolicy()).rules;
    expect(watches).toMatchObject({ verbs: ['watch', 'proxy'] });
    expect(watches.omitStages).not.toContain('ResponseStarted');
    expect(watches.omitStages).toContain('ResponseComplete');
    expect(others.omitStages).toEqual(['RequestReceived']);
  });

  it.each([
    ['users', { users: ['one', 'two'] }],
    ['groups', { userGroups: ['three'] }],
  ])('writes the requests of some %s only, and what no rule is about is not written', (_what, whose) => {
    const { rules } = parse(renderAuditPolicy(whose));
    expect(rules).toEqual(Array(3).fill(expect.objectContaining(whose)));
    const [kind = ''] = Object.keys(whose);
    expect(parse(renderAuditPolicy()).rules.some((rule: object) => kind in rule)).toBe(false);
  });
});

describe('AuditLog', () => {
  let directory: string;
  let path: string;
  let log: AuditLog;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'audit-log-test-'));
    path = join(directory, 'audit.jsonl');
    await writeFile(path, '');
    log = new AuditLog(path);
  });

  afterEach(async () => {
    await log.close();
    await rm(directory, { recursive: true });
  });

  it('counts what was added since the last read', async () => {
    await appendFile(path, podGet('a', 200) + podGet('a', 404));
    const first = await log.read();
    await appendFile(path, podGet('b', 200));
    const second = await log.read();
    expect(first.count()).toBe(2);
    expect(second.since(first).entries()).toMatchObject([{ user: 'b', code: 200, count: 1 }]);
  });

  it('counts a line that is half written once it is whole, at whatever byte it was cut', async () => {
    const line = Buffer.from(podGet('ä日', 200));
    const cut = line.indexOf('日') + 1;
    await appendFile(path, line.subarray(0, cut));
    expect((await log.read()).count()).toBe(0);
    await appendFile(path, line.subarray(cut));
    expect((await log.read()).count({ user: 'ä日' })).toBe(1);
  });

  it('reads a log of several megabytes, and counts once when asked twice at once', async () => {
    await appendFile(path, podGet('a', 200).repeat(20_000));
    const [one, two] = await Promise.all([log.read(), log.read()]);
    expect([one.count(), two.count()]).toEqual([20_000, 20_000]);
  });
});
