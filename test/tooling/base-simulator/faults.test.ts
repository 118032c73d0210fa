import { afterEach, describe, expect, it } from 'vitest';
import { FaultScript } from '../../../samples/base-simulator/faults.ts';
import { BIZ, type Rig, startRig } from './rig.ts';

describe('FaultScript', () => {
  const request = { bizName: 'biz1', bizVersion: '1', bizUrl: 'file:///a/b.jar' };

  it.each([
    [{}, true],
    [{ command: 'installBiz' }, true],
    [{ command: 'uninstallBiz' }, false],
    [{ bizName: 'biz1' }, true],
    [{ bizName: 'biz2' }, false],
    [{ bizVersion: '2' }, false],
    [{ urlIncludes: 'a/b' }, true],
    [{ urlIncludes: 'a/c' }, false],
    [{ bizName: 'biz1', urlIncludes: 'a/c' }, false],
  ] as const)('a fault for %j meets the install: %s', (match, isMet) => {
    const script = new FaultScript();
    script.add({ ...match, failure: 'x' });
    expect(script.take('installBiz', request)).toEqual(isMet ? { failure: 'x' } : {});
  });

  it('meets as many commands as it says', () => {
    const script = new FaultScript();
    script.add({ failure: 'x', times: 2 });
    const taken = [1, 2, 3].map(() => script.take('installBiz', request));
    expect(taken).toEqual([{ failure: 'x' }, { failure: 'x' }, {}]);
  });

  it('adds faults up, the later one first, until they are removed', () => {
    const script = new FaultScript();
    script.add({ failure: 'old', installMs: 7 });
    const remove = script.add({ failure: 'new' });
    expect(script.take('installBiz', request)).toEqual({ failure: 'new', installMs: 7 });
    remove();
    expect(script.take('installBiz', request)).toEqual({ failure: 'old', installMs: 7 });
    script.clear();
    expect(script.take('installBiz', request)).toEqual({});
  });
});

describe('a base under faults', () => {
  let rig: Rig;
  afterEach(() => rig.stop());

  function install(changes: Partial<typeof BIZ> = {}, identity = 'base-1'): void {
    rig.controller.send(identity, 'installBiz', { ...BIZ, ...changes });
  }

  /** The names in the answers so far, after everything that was said before is heard. */
  async function answers(): Promise<string[]> {
    rig.fleet.base('base-1').publishRaw('fence', '{}');
    await rig.controller.nth(1, { kind: 'fence' });
    return rig.controller.all({ kind: 'bizOperation' }).map((one) => JSON.parse(one.text).data?.bizName ?? one.text);
  }

  it('installs slowly what the fault names, and the rest as always', async () => {
    rig = await startRig();
    rig.fleet.base('base-1').setFault({ bizName: 'slow', installMs: 60 });
    install({ bizName: 'slow' });
    install({ bizName: 'quick' });
    await rig.controller.nth(2, { kind: 'bizOperation' });
    expect(await answers()).toEqual(['quick', 'slow']);
  });

  it('fails installs by URL, on the base of the fault only', async () => {
    rig = await startRig({ count: 2 });
    rig.fleet.base('base-1').setFault({ urlIncludes: 'biz1-', failure: 'java.lang.IllegalStateException: no' });
    install();
    install({}, 'base-2');
    const first = await rig.controller.nth(1, { kind: 'bizOperation', identity: 'base-1' });
    const second = await rig.controller.nth(1, { kind: 'bizOperation', identity: 'base-2' });
    expect(first.data.response).toMatchObject({ code: 'FAILED', message: 'java.lang.IllegalStateException: no' });
    expect(second.data.response.code).toBe('SUCCESS');
    expect(rig.fleet.base('base-1').modules()).toEqual([]);
  });

  it('lists a broken module as BROKEN', async () => {
    rig = await startRig();
    rig.fleet.setFault({ isBroken: true, times: 1 });
    install();
    await rig.controller.nth(1, { kind: 'bizOperation' });
    rig.controller.send('base-1', 'queryAllBiz', {});
    const { data } = await rig.controller.nth(1, { kind: 'simpleBiz' });
    expect(data).toMatchObject([{ name: 'biz1', state: 'broken' }]);
  });

  it('answers twice', async () => {
    rig = await startRig();
    rig.fleet.setFault({ answers: 'twice', times: 1 });
    install();
    await rig.controller.nth(2, { kind: 'bizOperation' });
    expect(await answers()).toEqual(['biz1', 'biz1']);
    expect(rig.fleet.history.installsExecuted()).toHaveLength(1);
  });

  it('answers late, after the module is there', async () => {
    rig = await startRig();
    rig.fleet.setFault({ bizName: 'late', answerDelayMs: 60 });
    install({ bizName: 'late' });
    await rig.fleet.history.waitFor({ bizName: 'late', outcome: 'executed' });
    install({ bizName: 'soon' });
    await rig.controller.nth(2, { kind: 'bizOperation' });
    expect(await answers()).toEqual(['soon', 'late']);
  });

  it('executes without an answer', async () => {
    rig = await startRig();
    rig.fleet.setFault({ command: 'installBiz', answers: 'never' });
    rig.fleet.setFault({ command: 'health', answers: 'never' });
    install();
    rig.controller.send('base-1', 'health', {});
    await rig.fleet.history.waitFor({ outcome: 'executed' }, { count: 2 });
    expect(await answers()).toEqual([]);
    expect(rig.controller.all({ kind: 'health' })).toEqual([]);
    expect(rig.fleet.base('base-1').modules()).toHaveLength(1);
  });

  it('sends garbage instead of an answer, and unasked', async () => {
    rig = await startRig();
    rig.fleet.setFault({ command: 'queryAllBiz', garbage: '{"data":' });
    rig.controller.send('base-1', 'queryAllBiz', {});
    await rig.broker.recorder.waitFor({ topic: '+/base-1/base/simpleBiz' });
    rig.fleet.base('base-1').publishRaw('heart', 'not json');
    await rig.broker.recorder.waitFor({ topic: '+/base-1/base/heart', matches: (one) => one.payload === 'not json' });
    expect(rig.broker.recorder.records({ topic: '+/base-1/base/simpleBiz' }).map((one) => one.payload)).toEqual([
      '{"data":',
    ]);
  });

  it('names another identity in its heartbeat than in the topic', async () => {
    rig = await startRig();
    const base = rig.fleet.base('base-1');
    base.setPayloadIdentity('base-9');
    base.beat();
    const { data } = await rig.controller.nth(2, { kind: 'heart', identity: 'base-1' });
    expect(data.baseMetadata.identity).toBe('base-9');
  });

  it('announces its modules unasked', async () => {
    rig = await startRig();
    const base = rig.fleet.base('base-1');
    base.placeModule({ bizName: 'biz7', bizVersion: '1' });
    base.placeModule({ bizName: 'biz8', bizVersion: '1' }, 'STOPPED');
    base.announceModules();
    const { data } = await rig.controller.nth(1, { kind: 'simpleBiz' });
    expect(data).toEqual([
      { name: 'biz7', version: '1', state: 'activated', latestStateRecord: {} },
      { name: 'biz8', version: '1', state: 'stopped', latestStateRecord: {} },
    ]);
  });

  it('loses, stops or breaks a module on its own', async () => {
    rig = await startRig();
    const base = rig.fleet.base('base-1');
    for (const bizName of ['a', 'b', 'c']) base.placeModule({ bizName, bizVersion: '1' });
    base.crashModule('a', '1');
    base.crashModule('b', '1', 'STOPPED');
    base.crashModule('c', '1', 'gone');
    expect(base.modules().map((module) => [module.bizName, module.state])).toEqual([
      ['a', 'BROKEN'],
      ['b', 'STOPPED'],
    ]);
    expect(() => base.crashModule('c', '1')).toThrow('bizName: base base-1 has no module c:1');
  });

  it('shows the metaspace that is set', async () => {
    rig = await startRig({ maxMetaspace: 1_000_000_000 });
    rig.fleet.base('base-1').setMetaspace({ usedBytes: 990_000_000 });
    rig.controller.send('base-1', 'health', {});
    const { data } = await rig.controller.nth(1, { kind: 'health' });
    expect(data.data.healthData.jvm).toMatchObject({
      'java used metaspace': 990_000_000,
      'java max metaspace': 1_000_000_000,
    });
  });

  it('plays a baseline with the faults of its modules', async () => {
    rig = await startRig();
    rig.fleet.setFault({ bizName: 'biz2', failure: 'java.lang.Error: no' });
    rig.controller.send('base-1', 'baseline', [BIZ, { ...BIZ, bizName: 'biz2', bizUrl: 'file:///biz2-1.0.0.jar' }]);
    const { data } = await rig.controller.nth(1, { kind: 'batchInstallBizResponse' });
    expect(data.response.data.bizUrlToResponse).toMatchObject({
      [BIZ.bizUrl]: { code: 'SUCCESS' },
      'file:///biz2-1.0.0.jar': { code: 'FAILED', message: 'internal exception: no' },
    });
    expect(rig.fleet.history.records().map(({ command, bizName, outcome }) => [command, bizName, outcome])).toEqual([
      ['batchInstallBiz', 'biz1', 'executed'],
      ['batchInstallBiz', 'biz2', 'failed'],
    ]);
  });
});
