import { describe, expect, it } from 'vitest';
import { parse } from '../../../../tunnels/arklet/parse.ts';
import { readBizList } from '../../../../tunnels/arklet/read.ts';
import { httpAnswers, mqttBaseMessages } from '../recordings.ts';
import { hear, hearData, refusalOf, SOURCE } from './parsing.ts';

const SIMPLE = { name: 'biz1', version: '1.0', state: 'activated', latestStateRecord: {} };
const FULL = { bizName: 'biz1', bizVersion: '1.0', bizState: 'BROKEN', mainClass: 'x.Y' };

describe('a module list', () => {
  it.each([
    ['simpleBiz', [SIMPLE], 'ACTIVATED'],
    ['biz', [FULL], 'BROKEN'],
    ['biz', { code: 'SUCCESS', data: [FULL] }, 'BROKEN'],
    ['simpleBiz', [{ ...SIMPLE, state: 'Resolved' }], 'RESOLVED'],
    ['biz', [{ ...FULL, bizState: 'deactivated' }], 'DEACTIVATED'],
  ] as const)('on %s is read: %j', (type, data, state) => {
    expect(hearData(type, data)).toEqual({
      invalid: undefined,
      calls: [
        {
          on: 'moduleList',
          envelope: { ...SOURCE, publishedAt: 5 },
          modules: [{ name: 'biz1', version: '1.0', state }],
        },
      ],
    });
  });

  it('is empty where the base has no module', () => {
    expect(hearData('simpleBiz', []).calls).toMatchObject([{ modules: [] }]);
  });

  it.each([
    ['data[1].state is not a module state', [SIMPLE, { ...SIMPLE, state: 'INSTALLED' }]],
    ['data[1].name is missing', [SIMPLE, {}]],
    ['data[1].name is missing', [SIMPLE, null]],
    ['data[0].name is empty', [{ ...SIMPLE, name: '' }]],
    ['data[0].version is missing', [{ ...SIMPLE, version: null }]],
    ['data[0].version is not a string', [{ ...SIMPLE, version: 1 }]],
    ['data[0].bizState is missing', [{ ...FULL, bizState: null }]],
    ['data[0] is not an object', ['biz1:1.0']],
    ['data.code is not SUCCESS', { code: 'FAILED', data: [] }],
    ['data.code is missing', { data: [] }],
    ['data.code is missing', null],
    ['data.data is missing', { code: 'SUCCESS', data: null }],
    ['data.data is not a list', { code: 'SUCCESS', data: {} }],
  ])('is refused as a whole: %s', (fault, data) => {
    expect(refusalOf('simpleBiz', data)).toBe(`Arklet.InvalidMessage: ${fault}`);
  });

  it('may have 2,000 entries and not one more', () => {
    const entries = Array.from({ length: 2_000 }, (_, index) => ({
      name: `b${index}`,
      version: '1',
      state: 'BROKEN',
    }));
    expect(hearData('simpleBiz', entries).calls).toHaveLength(1);
    expect(refusalOf('simpleBiz', [...entries, entries[0]])).toBe(
      'Arklet.InvalidMessage: data has 2001 entries, 2000 are allowed',
    );
  });

  it('is read from the answers of a real base over HTTP too', () => {
    const lists = httpAnswers('POST /queryAllBiz {}').map((answer) => parse(SOURCE, Buffer.from(answer), readBizList));
    expect(lists).toEqual([
      { message: [] },
      { message: [{ name: 'biz1-web-single-host', version: '0.0.1-SNAPSHOT', state: 'ACTIVATED' }] },
    ]);
  });
});

describe('the answer to a command', () => {
  const INSTALL = { command: 'installBiz', bizName: 'biz1', bizVersion: '1.0' };
  const resultOf = (data: unknown) => {
    const [call] = hearData('bizOperation', data).calls;
    return call?.on === 'operationResult' ? call.result : undefined;
  };

  it('is read as recorded from a real base', () => {
    const operations = mqttBaseMessages.filter(({ topic }) => topic.endsWith('/bizOperation'));
    const module = { name: 'biz1-web-single-host', version: '0.0.1-SNAPSHOT' };
    const results = operations
      .flatMap(({ payload }) => hear('bizOperation', payload).calls)
      .map((call) => call.on === 'operationResult' && call.result);
    expect(results).toEqual([
      {
        command: 'install',
        module,
        outcome: 'done',
        code: 'SUCCESS',
        message: 'Install Biz: biz1-web-single-host:0.0.1-SNAPSHOT success, cost: 870 ms, started at: 07:43:13,503',
        state: 'ACTIVATED',
      },
      {
        command: 'install',
        module: { name: 'nope', version: '1' },
        outcome: 'failed',
        code: 'FAILED',
        message: 'java.io.FileNotFoundException: /nope.jar (No such file or directory)',
        state: undefined,
      },
      {
        command: 'install',
        module: undefined,
        outcome: 'failed',
        code: 'FAILED',
        message: 'bizUrl should not be blank',
        state: undefined,
      },
      {
        command: 'uninstall',
        module,
        outcome: 'done',
        code: 'SUCCESS',
        message: 'Uninstall biz: biz1-web-single-host:0.0.1-SNAPSHOT success.',
        state: undefined,
      },
      {
        command: 'uninstall',
        module,
        outcome: 'already',
        code: 'NOT_FOUND_BIZ',
        message: 'Uninstall biz: biz1-web-single-host:0.0.1-SNAPSHOT not found.',
        state: undefined,
      },
    ]);
  });

  it.each([
    ['done', 'SUCCESS', { code: 'SUCCESS', data: { code: 'SUCCESS' } }],
    ['already', 'REPEAT_BIZ', { code: 'FAILED', data: { code: 'REPEAT_BIZ' } }],
    ['failed', 'NOT_FOUND_BIZ', { code: 'FAILED', data: { code: 'NOT_FOUND_BIZ' } }],
    ['failed', 'FAILED', { code: 'SUCCESS', data: { code: 'FAILED' } }],
    ['failed', 'FAILED', { code: 'FAILED', data: { code: 'SUCCESS' } }],
    ['failed', 'SUCCESS', { code: 'SUCCESS', data: null }],
    ['failed', 'CMD_PROCESS_INTERNAL_ERROR', { code: 'CMD_PROCESS_INTERNAL_ERROR', message: 'no' }],
    ['busy', 'FAILED', { code: 'FAILED', message: 'a:1 conflict, exist unfinished command(installBiz)' }],
    ['busy', 'FAILED', { code: 'FAILED', data: { message: 'conflict, exist unfinished command(installBiz)' } }],
  ])('to an install is %s with %s: %j', (outcome, code, response) => {
    expect(resultOf({ ...INSTALL, response })).toMatchObject({ outcome, code, state: undefined });
  });

  it('to an uninstall is not the better for REPEAT_BIZ', () => {
    const response = { code: 'FAILED', data: { code: 'REPEAT_BIZ' } };
    expect(resultOf({ ...INSTALL, command: 'uninstallBiz', response })).toMatchObject({ outcome: 'failed' });
  });

  it('says the state of the very module and version, whatever else it lists', () => {
    const other = { bizName: 'biz1', bizVersion: '0.9', bizState: 'ACTIVATED' };
    const own = { bizName: 'biz1', bizVersion: '1.0', bizState: 'deactivated' };
    const withInfos = (...bizInfos: unknown[]) =>
      resultOf({ ...INSTALL, response: { code: 'SUCCESS', data: { code: 'SUCCESS', bizInfos } } });
    expect(withInfos(other, null, { bizName: 7 }, own)).toMatchObject({ outcome: 'done', state: 'DEACTIVATED' });
    expect(withInfos()).toMatchObject({ outcome: 'done', state: undefined });
  });

  it.each([
    [
      'installed',
      {
        code: 'SUCCESS',
        data: { code: 'SUCCESS', bizInfos: [{ bizName: 'shop', bizVersion: '1.0.0', bizState: 'activated' }] },
      },
    ],
    [
      'there before',
      { code: 'FAILED', data: { code: 'REPEAT_BIZ', message: 'Biz: shop:1.0.0 has been installed or registered.' } },
    ],
  ])('to an install has failed when its jar is another module, %s', (_, response) => {
    const result = resultOf({ ...INSTALL, response });
    expect(result).toMatchObject({ outcome: 'failed', code: 'WRONG_MODULE', state: undefined });
    expect(result?.message).toContain('the jar contains module shop:1.0.0');
  });

  it('names another module in at most 1 KiB', () => {
    const bizInfos = [{ bizName: 'é'.repeat(2_000), bizVersion: '1', bizState: 'ACTIVATED' }];
    const message = resultOf({
      ...INSTALL,
      response: { code: 'SUCCESS', data: { code: 'SUCCESS', bizInfos } },
    })?.message;
    expect(message).toMatch(/^the jar contains module é+…$/);
    expect(Buffer.byteLength(message ?? '')).toBeGreaterThan(1_020);
    expect(Buffer.byteLength(message ?? '')).toBeLessThanOrEqual(1_024);
  });

  it.each([
    ['an install of what was there', INSTALL, { code: 'FAILED', data: { code: 'REPEAT_BIZ' } }],
    ['an uninstall', { ...INSTALL, command: 'uninstallBiz' }, { code: 'SUCCESS', data: { code: 'SUCCESS' } }],
  ])('to %s says no state, whatever it lists', (_, operation, { code, data }) => {
    const bizInfos = [{ bizName: 'biz1', bizVersion: '1.0', bizState: 'ACTIVATED' }];
    const result = resultOf({ ...operation, response: { code, data: { ...data, bizInfos } } });
    expect(result?.outcome).not.toBe('failed');
    expect(result?.state).toBeUndefined();
  });

  it('to an install of what is there under its own name is no failure', () => {
    const message = `Biz: ${INSTALL.bizName}:${INSTALL.bizVersion} has been installed or registered.`;
    const response = { code: 'FAILED', data: { code: 'REPEAT_BIZ', message } };
    expect(resultOf({ ...INSTALL, response })).toMatchObject({ outcome: 'already' });
  });

  it('is refused where it does not say what it answers or how', () => {
    expect(refusalOf('bizOperation', { ...INSTALL, command: 'switchBiz', response: { code: 'SUCCESS' } })).toBe(
      'Arklet.InvalidMessage: data.command is not installBiz or uninstallBiz',
    );
    expect(refusalOf('bizOperation', INSTALL)).toBe('Arklet.InvalidMessage: data.response.code is missing');
    expect(refusalOf('bizOperation', { ...INSTALL, bizName: 7, response: { code: 'X' } })).toBe(
      'Arklet.InvalidMessage: data.bizName is not a string',
    );
  });
});

describe('the answer to a baseline', () => {
  const MODULE = { name: 'biz1', version: '1.0' };
  const batch = (bizUrlToResponse: unknown, code = 'SUCCESS') =>
    hearData('batchInstallBizResponse', {
      command: 'batchInstallBiz',
      response: { code, data: { code, message: 'batch', bizUrlToResponse } },
    });

  it('is one result for every module, and one of no module for a url that failed', () => {
    const heard = batch(
      {
        'file:///a.jar': { code: 'SUCCESS', message: 'fine', bizInfos: [FULL] },
        'file:///b.jar': { code: 'FAILED', message: 'broken jar' },
      },
      'FAILED',
    );
    expect(heard.calls.map((call) => call.on === 'operationResult' && call.result)).toEqual([
      { command: 'install', module: MODULE, outcome: 'done', code: 'SUCCESS', message: 'fine', state: 'BROKEN' },
      {
        command: 'install',
        module: undefined,
        outcome: 'failed',
        code: 'FAILED',
        message: 'broken jar',
        state: undefined,
      },
    ]);
  });

  it('is one result of no module where the base could not even begin', () => {
    const response = { code: 'FAILED', message: 'not a list' };
    expect(hearData('batchInstallBizResponse', { response }).calls).toMatchObject([
      { result: { module: undefined, outcome: 'failed', message: 'not a list' } },
    ]);
  });

  it('is no result where nothing was to be installed', () => {
    expect(batch({}).calls).toEqual([]);
  });

  it('is refused where it cannot be read', () => {
    expect(batch([]).invalid?.message).toBe('data.response.data.bizUrlToResponse is not an object');
    expect(batch({ a: 7 }).invalid?.message).toBe('data.response.data.bizUrlToResponse{0} is not an object');
  });
});
