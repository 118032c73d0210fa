import { describe, expect, it } from 'vitest';
import type { MessageType } from '../../../../tunnels/mqtt/topics.ts';
import { HEART, hear, hearData, refusalOf, withField } from './parsing.ts';

const MODULE = { bizName: 'biz1', bizVersion: '1.0.0', bizState: 'ACTIVATED' };
const RESPONSE = { code: 'SUCCESS', message: '', data: { code: 'SUCCESS', message: '', bizInfos: [MODULE] } };
const OPERATION = { command: 'installBiz', bizName: 'biz1', bizVersion: '1.0.0', response: RESPONSE };

describe('a text of a message', () => {
  it.each<[string, MessageType, unknown, readonly string[], number]>([
    ['the name of a base', 'heart', HEART, ['baseMetadata', 'name'], 253],
    ['the version of a base', 'heart', HEART, ['baseMetadata', 'version'], 128],
    ['the cluster of a base', 'heart', HEART, ['baseMetadata', 'clusterName'], 253],
    ['the host of a base', 'heart', HEART, ['localHostName'], 253],
    ['the state of a base', 'heart', HEART, ['state'], 128],
    ['the name of an answer', 'bizOperation', OPERATION, ['bizName'], 4_096],
    ['the version of an answer', 'bizOperation', OPERATION, ['bizVersion'], 4_096],
    ['the code of an answer', 'bizOperation', OPERATION, ['response', 'code'], 128],
    ['the inner code of an answer', 'bizOperation', OPERATION, ['response', 'data', 'code'], 128],
  ])('that is %s has a longest length', (_, type, message, path, length) => {
    expect(refusalOf(type, withField(message, path, 'x'.repeat(length)))).toBeUndefined();
    expect(refusalOf(type, withField(message, path, 'x'.repeat(length + 1)))).toBe(
      `Arklet.InvalidMessage: data.${path.join('.')} has ${length + 1} characters, ${length} are allowed`,
    );
  });
});

describe('half a character in a text', () => {
  it('becomes U+FFFD, and a whole one stays', () => {
    const { calls } = hearData('heart', withField(HEART, ['localHostName'], '\ud800 \udc00 😀'));
    expect(calls).toMatchObject([{ base: { hostName: '\ufffd \ufffd 😀' } }]);
  });
});

describe('the port of a base', () => {
  it.each([
    [0, true],
    [1, true],
    [65_535, true],
    [65_536, false],
    [-1, false],
    [1.5, false],
    ['1238', true],
    [`${'0'.repeat(36)}1238`, true],
    [`${'0'.repeat(37)}1238`, false],
  ])('may be %s: %s', (port, isTaken) => {
    expect(refusalOf('heart', withField(HEART, ['port'], port)) === undefined).toBe(isTaken);
  });
});

describe('the time of a message', () => {
  const BOUND = 8.64e15;

  it.each([
    [BOUND, true],
    [-BOUND, true],
    [BOUND + 1, false],
    [-BOUND - 1, false],
  ])('may be %d ms, as a Date can: %s', (publishTimestamp, isTaken) => {
    const { invalid } = hear('simpleBiz', JSON.stringify({ publishTimestamp, data: [] }));
    expect(invalid === undefined).toBe(isTaken);
  });
});

describe('an amount of a health', () => {
  it.each([
    [-1, undefined],
    [0, 0],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    [Number.MAX_SAFE_INTEGER + 1, undefined],
  ])('of %d is taken as %s', (used, metaspaceUsedBytes) => {
    const data = { healthData: { jvm: { 'java used metaspace': used } } };
    expect(hearData('health', { code: 'SUCCESS', data }).calls).toMatchObject([{ health: { metaspaceUsedBytes } }]);
  });
});

describe('the answer to a baseline', () => {
  const INFOS_FAULT = 'Arklet.InvalidMessage: data.response.data.bizInfos has 10001 entries, 10000 are allowed';
  const URLS_FAULT = 'Arklet.InvalidMessage: data.response.data.bizUrlToResponse has 10001 entries, 10000 are allowed';
  const withData = (fields: object): unknown => ({ response: { code: 'FAILED', data: { code: 'FAILED', ...fields } } });
  const urlsOf = (length: number): unknown =>
    withData({ bizUrlToResponse: Object.fromEntries(Array.from({ length }, (_, index) => [`u${index}`, null])) });

  it('has 10,000 urls at most, and as many modules', () => {
    expect(refusalOf('batchInstallBizResponse', urlsOf(10_000))).toBeUndefined();
    expect(refusalOf('batchInstallBizResponse', urlsOf(10_001))).toBe(URLS_FAULT);
    const infosOf = (length: number): unknown => withData({ bizInfos: Array(length).fill(MODULE) });
    expect(refusalOf('batchInstallBizResponse', infosOf(10_000))).toBeUndefined();
    expect(refusalOf('batchInstallBizResponse', infosOf(10_001))).toBe(INFOS_FAULT);
  });
});

describe('a list of modules', () => {
  const listOf = (length: number): unknown =>
    Array.from({ length }, (_, index) => ({ ...MODULE, bizVersion: String(index) }));

  it('has 2,000 entries at most', () => {
    expect(hearData('simpleBiz', listOf(2_000)).invalid).toBeUndefined();
    expect(refusalOf('simpleBiz', listOf(2_001))).toBe(
      'Arklet.InvalidMessage: data has 2001 entries, 2000 are allowed',
    );
  });
});
