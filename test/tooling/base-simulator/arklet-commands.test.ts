import { beforeEach, describe, expect, it } from 'vitest';
import type { BizRequest, Reply } from '../../../samples/base-simulator/model.ts';
import { ArkletRig, biz, data, ONE, TWO } from './arklet-rig.ts';

const MIB = 1024 * 1024;

let rig: ArkletRig;
beforeEach(() => {
  rig = new ArkletRig();
});

describe('uninstallBiz', () => {
  it('takes the module away after uninstallMs', async () => {
    await rig.end(rig.arklet.installBiz(ONE));
    const uninstall = rig.arklet.uninstallBiz(ONE);
    await rig.clock.advanceAsync(99);
    expect(rig.states()).toEqual({ 'biz1:1': 'DEACTIVATED' });
    expect((await rig.arklet.installBiz(ONE)).outcome).toBe('refused:conflict');
    await rig.clock.advanceAsync(1);
    expect((await uninstall).outcome).toBe('executed');
    expect(rig.arklet.modules()).toEqual([]);
  });

  it('answers NOT_FOUND_BIZ for a module, or a version, that is not there', async () => {
    rig.arklet.placeModule(ONE);
    const reply = await rig.arklet.uninstallBiz(TWO);
    expect(reply.outcome).toBe('refused:NOT_FOUND_BIZ');
    expect(reply.response).toEqual({
      code: 'FAILED',
      message: 'uninstall biz not success!',
      data: { code: 'NOT_FOUND_BIZ', message: 'Uninstall biz: biz1:2 not found.' },
    });
    expect(rig.states()).toEqual({ 'biz1:1': 'ACTIVATED' });
  });

  it.each([
    [{}, 'bizName should not be blank'],
    [{ bizName: 'biz1' }, 'bizVersion should not be blank'],
  ])('refuses the invalid %j', async (request, message) => {
    expect(await rig.arklet.uninstallBiz(request)).toMatchObject({ outcome: 'refused:invalid', response: { message } });
  });
});

describe('switchBiz', () => {
  it('makes a version the active one of its name', async () => {
    rig.arklet.placeModule(ONE);
    rig.arklet.placeModule(TWO, 'DEACTIVATED');
    rig.arklet.placeModule(biz('biz2', '1'));
    expect(await rig.arklet.switchBiz(TWO)).toEqual({
      outcome: 'executed',
      response: { code: 'SUCCESS', data: { code: 'SUCCESS', message: 'Switch biz: biz1:2 is activated.' } },
    });
    expect(rig.states()).toEqual({ 'biz1:1': 'DEACTIVATED', 'biz1:2': 'ACTIVATED', 'biz2:1': 'ACTIVATED' });
    expect((await rig.arklet.switchBiz(TWO)).outcome).toBe('executed');
    expect(rig.states()).toEqual({ 'biz1:1': 'DEACTIVATED', 'biz1:2': 'ACTIVATED', 'biz2:1': 'ACTIVATED' });
  });

  it('fails for a version that is not there, or neither active nor inactive', async () => {
    rig.arklet.placeModule(ONE);
    expect(await rig.arklet.switchBiz(TWO)).toEqual({
      outcome: 'refused:NOT_FOUND_BIZ',
      response: {
        code: 'FAILED',
        message: 'switch biz not success!',
        data: { code: 'NOT_FOUND_BIZ', message: 'Switch biz: biz1:2 not found.' },
      },
    });
    rig.arklet.placeModule(TWO, 'BROKEN');
    expect(data(await rig.arklet.switchBiz(TWO))).toEqual({
      code: 'ILLEGAL_STATE_BIZ',
      message: "Switch Biz: biz1:2's state must not be BROKEN.",
    });
    expect((await rig.arklet.switchBiz({})).outcome).toBe('refused:invalid');
    expect(rig.states()).toEqual({ 'biz1:1': 'ACTIVATED', 'biz1:2': 'BROKEN' });
  });

  it('waits for nothing: a version that is being installed is a conflict', async () => {
    const install = rig.arklet.installBiz(ONE);
    expect((await rig.arklet.switchBiz(ONE)).outcome).toBe('refused:conflict');
    await rig.end(install);
  });
});

describe('batchInstallBiz', () => {
  function batch(requests: BizRequest[]): { reply: Promise<Reply>; outcomes: string[] } {
    const outcomes: string[] = [];
    const note = (index: number, { outcome }: Reply): void => {
      outcomes[index] = outcome;
    };
    return { reply: rig.arklet.batchInstallBiz(requests, () => ({}), note), outcomes };
  }

  it('installs side by side, and tells by URL what became of each', async () => {
    rig.arklet.placeModule(TWO);
    const missing = { bizName: 'biz3', bizVersion: '1', bizUrl: 'file:///missing.jar' };
    const { reply, outcomes } = batch([ONE, TWO, missing]);
    await rig.clock.advanceAsync(800);
    expect(await reply).toMatchObject({ outcome: 'failed', response: { code: 'FAILED' } });
    expect(outcomes).toEqual(['executed', 'refused:REPEAT_BIZ', 'failed']);
    const { bizUrlToResponse, code, message } = data(await reply);
    expect([code, message]).toEqual(['FAILED', 'batch install failed']);
    expect(bizUrlToResponse[ONE.bizUrl].code).toBe('SUCCESS');
    expect(bizUrlToResponse[TWO.bizUrl].code).toBe('REPEAT_BIZ');
    expect(bizUrlToResponse[missing.bizUrl]).toEqual({
      code: 'FAILED',
      message: 'internal exception: /missing.jar (No such file or directory)',
    });
  });

  it('installs nothing when one item is invalid', async () => {
    const { reply, outcomes } = batch([ONE, { bizName: 'biz2', bizVersion: '1' }]);
    expect((await rig.end(reply)).response?.message).toBe('bizUrl should not be blank');
    expect(outcomes).toEqual(['refused:invalid', 'refused:invalid']);
    expect(rig.arklet.modules()).toEqual([]);
  });

  it('holds no lock on its modules: a single install meanwhile is a repeat, an uninstall fails', async () => {
    const { reply } = batch([ONE]);
    expect((await rig.arklet.installBiz(ONE)).outcome).toBe('refused:REPEAT_BIZ');
    const uninstall = await rig.arklet.uninstallBiz(ONE);
    expect(uninstall.outcome).toBe('failed');
    expect(uninstall.response?.message).toContain('BizState must be ACTIVATED, DEACTIVATED or BROKEN');
    expect((await batch([TWO]).reply).outcome).toBe('refused:conflict');
    expect((await rig.end(reply)).outcome).toBe('executed');
  });

  it('succeeds with nothing to install', async () => {
    expect(await batch([]).reply).toMatchObject({ outcome: 'executed', response: { data: { bizUrlToResponse: {} } } });
  });
});

describe('health', () => {
  it('counts the run time from the start of the process', async () => {
    await rig.clock.advanceAsync(46_913);
    expect(rig.jvm()['run time(s)']).toBe(46.913);
  });

  it('shows unlimited metaspace by default, that grows by 1.2 MiB per module', () => {
    expect(rig.jvm()['java max metaspace']).toBe(-1);
    const before = rig.usedMetaspace();
    rig.arklet.placeModule(ONE);
    rig.arklet.placeModule(biz('biz2', '1'));
    expect(rig.usedMetaspace() - before).toBeCloseTo(2 * 1.2 * MIB, -1);
  });

  it('jitters by 200 KiB at most to either side', () => {
    const used = [0, 0.5, 0.999_999].map((random) => {
      rig = new ArkletRig({ random: () => random });
      return rig.usedMetaspace();
    }) as [number, number, number];
    expect(used[1] - used[0]).toBe(200 * 1024);
    expect(used[2] - used[1]).toBeGreaterThan(199 * 1024);
    expect(used[2] - used[1]).toBeLessThanOrEqual(200 * 1024);
  });

  it('stays below a limit, and shows what is set', () => {
    rig = new ArkletRig({ maxMetaspace: 60 * MIB });
    for (let index = 0; index < 5; index += 1) rig.arklet.placeModule(biz(`biz${index}`, '1'));
    const jvm = rig.jvm();
    expect(jvm['java max metaspace']).toBe(60 * MIB);
    expect(jvm['java used metaspace']).toBe(60 * MIB);
    expect(jvm['java committed metaspace']).toBe(60 * MIB);
    rig.arklet.setMetaspace({ usedBytes: 42, maxBytes: 100 });
    expect(rig.jvm()).toMatchObject({
      'java used metaspace': 42,
      'java max metaspace': 100,
    });
    rig.arklet.setMetaspace({ usedBytes: null });
    expect(rig.usedMetaspace()).toBe(100);
  });

  it('lists the base and its modules', () => {
    rig.arklet.placeModule(ONE, 'BROKEN');
    const { masterBizInfo, bizListInfo } = data(rig.arklet.health()).healthData;
    expect(masterBizInfo).toEqual({ bizName: 'base', bizVersion: '1.0.0', bizState: 'ACTIVATED', webContextPath: '/' });
    expect(bizListInfo.map((info: { bizName: string }) => info.bizName)).toEqual(['base', 'biz1']);
  });
});

describe('the process', () => {
  it('takes commands in work with it: no answer', async () => {
    const commands = [
      rig.arklet.installBiz(ONE),
      rig.arklet.batchInstallBiz(
        [TWO],
        () => ({}),
        () => {},
      ),
    ];
    rig.arklet.terminate();
    expect(await Promise.all(commands)).toEqual([{ outcome: 'died' }, { outcome: 'died' }]);
    expect(rig.clock.pending).toBe(0);
  });

  it('loses or breaks a module on its own', () => {
    rig.arklet.placeModule(ONE);
    rig.arklet.placeModule(TWO);
    expect(rig.arklet.crashModule(ONE, 'STOPPED')).toBe(true);
    expect(rig.arklet.crashModule(TWO, 'gone')).toBe(true);
    expect(rig.arklet.crashModule(TWO, 'gone')).toBe(false);
    expect(rig.states()).toEqual({ 'biz1:1': 'STOPPED' });
  });
});
