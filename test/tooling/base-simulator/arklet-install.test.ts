import { beforeEach, describe, expect, it } from 'vitest';
import { ArkletRig, biz, data, ONE, TWO } from './arklet-rig.ts';

let rig: ArkletRig;
beforeEach(() => {
  rig = new ArkletRig();
});

describe('installBiz', () => {
  it('lists the module as RESOLVED while in work, and as ACTIVATED after installMs', async () => {
    const install = rig.arklet.installBiz(ONE);
    await rig.clock.advanceAsync(799);
    expect(rig.states()).toEqual({ 'biz1:1': 'RESOLVED' });
    await rig.clock.advanceAsync(1);
    expect(rig.states()).toEqual({ 'biz1:1': 'ACTIVATED' });
    const reply = await install;
    expect(reply.outcome).toBe('executed');
    expect(data(reply).message).toBe('Install Biz: biz1:1 success, cost: 800 ms, started at: 00:00:00,000');
  });

  it.each([
    ['installBiz', () => rig.arklet.installBiz(ONE)],
    ['uninstallBiz', () => rig.arklet.uninstallBiz(ONE)],
  ])('refuses %s of a module whose install is in work', async (command, send) => {
    const install = rig.arklet.installBiz(ONE);
    const refused = await send();
    expect(refused.outcome).toBe('refused:conflict');
    expect(refused.response).toEqual({
      code: 'FAILED',
      message: `FAILED:biz1:1 ${command} conflict, exist unfinished command(installBiz) for this biz`,
    });
    expect((await rig.end(install)).outcome).toBe('executed');
  });

  it('installs other modules, and other versions, meanwhile', async () => {
    const installs = [ONE, TWO, biz('biz2', '1')].map((request) => rig.arklet.installBiz(request));
    await rig.clock.advanceAsync(800);
    expect((await Promise.all(installs)).map((reply) => reply.outcome)).toEqual(['executed', 'executed', 'executed']);
  });

  it.each(['ACTIVATED', 'DEACTIVATED', 'BROKEN', 'STOPPED'] as const)(
    'answers REPEAT_BIZ when it is %s',
    async (state) => {
      rig.arklet.placeModule(ONE, state);
      const reply = await rig.arklet.installBiz(ONE);
      expect(reply.outcome).toBe('refused:REPEAT_BIZ');
      expect(data(reply)).toMatchObject({
        code: 'REPEAT_BIZ',
        message: 'Biz: biz1:1 has been installed or registered.',
      });
      expect(rig.states()).toEqual({ 'biz1:1': state });
    },
  );

  it.each([
    [{}, 'bizUrl should not be blank'],
    [{ bizName: 'biz1', bizVersion: '1', bizUrl: ' ' }, 'bizUrl should not be blank'],
    [{ bizName: 'biz1', bizUrl: 'file:///a.jar' }, 'bizName and bizVersion should be both blank or both not blank.'],
    [{ bizVersion: '1', bizUrl: 'file:///a.jar' }, 'bizName and bizVersion should be both blank or both not blank.'],
    [
      { bizUrl: 'file:///missing-1.0.jar' },
      'refresh biz info from jar failed: /missing-1.0.jar (No such file or directory)',
    ],
  ])('refuses the invalid %j', async (request, message) => {
    const reply = await rig.arklet.installBiz(request);
    expect(reply).toMatchObject({ outcome: 'refused:invalid', response: { code: 'FAILED', message } });
    expect(data(reply).message).toContain(`CommandValidationException: ${message}\n\tat `);
    expect(rig.arklet.modules()).toEqual([]);
  });

  it('takes name and version from the jar when the command has neither', async () => {
    await rig.end(rig.arklet.installBiz({ bizUrl: 'https://repo.example.com/biz1-web-2.1.0-ark-biz.jar' }));
    expect(rig.states()).toEqual({ 'biz1-web:2.1.0': 'ACTIVATED' });
  });

  it.each([
    ['file:///jars/missing.jar', '/jars/missing.jar (No such file or directory)'],
    ['file:/jars/missing.jar', '/jars/missing.jar (No such file or directory)'],
    ['https://repo.example.com/missing.jar', 'https://repo.example.com/missing.jar'],
  ])('fails at once for the jar that is not there, %s', async (bizUrl, text) => {
    const reply = await rig.arklet.installBiz({ ...ONE, bizUrl });
    expect(reply).toMatchObject({ outcome: 'failed', response: { message: `java.io.FileNotFoundException: ${text}` } });
    expect(data(reply).message).toContain(`ArkletRuntimeException: java.io.FileNotFoundException: ${text}\n\tat `);
    expect(rig.arklet.modules()).toEqual([]);
  });

  it('takes as long as planned, fails as planned, and leaves nothing behind', async () => {
    const install = rig.arklet.installBiz(ONE, { installMs: 50, failure: 'java.lang.OutOfMemoryError: Metaspace' });
    expect(rig.states()).toEqual({ 'biz1:1': 'RESOLVED' });
    await rig.clock.advanceAsync(50);
    expect(await install).toMatchObject({
      outcome: 'failed',
      response: { code: 'FAILED', message: 'java.lang.OutOfMemoryError: Metaspace', data: { code: 'FAILED' } },
    });
    expect(rig.arklet.modules()).toEqual([]);
    expect((await rig.end(rig.arklet.installBiz(ONE))).outcome).toBe('executed');
  });

  it('leaves a BROKEN module behind when planned so, which an uninstall takes away', async () => {
    const reply = await rig.end(rig.arklet.installBiz(ONE, { isBroken: true }));
    expect(reply).toMatchObject({ outcome: 'failed', response: { code: 'FAILED' } });
    expect(rig.states()).toEqual({ 'biz1:1': 'BROKEN' });
    await rig.end(rig.arklet.uninstallBiz(ONE));
    expect(rig.arklet.modules()).toEqual([]);
  });
});

describe('a second version of a module', () => {
  it('ends DEACTIVATED beside the active one by default', async () => {
    await rig.end(rig.arklet.installBiz(ONE));
    const reply = await rig.end(rig.arklet.installBiz(TWO));
    expect(rig.states()).toEqual({ 'biz1:1': 'ACTIVATED', 'biz1:2': 'DEACTIVATED' });
    expect(data(reply).bizInfos[0].bizState).toBe('DEACTIVATED');
  });

  it('takes over with activateNewModule', async () => {
    rig = new ArkletRig({ activateNewModule: true });
    await rig.end(rig.arklet.installBiz(ONE));
    await rig.end(rig.arklet.installBiz(TWO));
    expect(rig.states()).toEqual({ 'biz1:1': 'DEACTIVATED', 'biz1:2': 'ACTIVATED' });
  });

  it('becomes active when the first one is not', async () => {
    rig.arklet.placeModule(ONE, 'BROKEN');
    await rig.end(rig.arklet.installBiz(TWO));
    expect(rig.states()).toEqual({ 'biz1:1': 'BROKEN', 'biz1:2': 'ACTIVATED' });
  });

  it('replaces all versions of its name with uninstallThenInstall', async () => {
    await rig.end(rig.arklet.installBiz(ONE));
    await rig.end(rig.arklet.installBiz(biz('biz2', '1')));
    const install = rig.arklet.installBiz({ ...TWO, installStrategy: 'uninstallThenInstall' });
    await rig.clock.advanceAsync(99);
    expect(rig.states()).toEqual({ 'biz1:1': 'DEACTIVATED', 'biz2:1': 'ACTIVATED' });
    await rig.end(install);
    expect(rig.states()).toEqual({ 'biz1:2': 'ACTIVATED', 'biz2:1': 'ACTIVATED' });
  });

  it.each([50, 0])(
    'with uninstallThenInstall fails while the other version is being uninstalled (%i ms)',
    async (ms) => {
      await rig.end(rig.arklet.installBiz(ONE));
      const uninstall = rig.arklet.uninstallBiz(ONE);
      await rig.clock.advanceAsync(ms);
      const install = await rig.arklet.installBiz({ ...TWO, installStrategy: 'uninstallThenInstall' });
      expect(install).toMatchObject({
        outcome: 'failed',
        response: { message: expect.stringContaining('No BizRuntimeContext found for biz: biz1') },
      });
      expect((await rig.end(uninstall)).outcome).toBe('executed');
      expect(rig.states()).toEqual({});
    },
  );

  it('with uninstallThenInstall fails the uninstall that comes while it uninstalls the same version', async () => {
    await rig.end(rig.arklet.installBiz(ONE));
    const install = rig.arklet.installBiz({ ...TWO, installStrategy: 'uninstallThenInstall' });
    await rig.clock.advanceAsync(50);
    const uninstall = await rig.arklet.uninstallBiz(ONE);
    expect(uninstall).toMatchObject({
      outcome: 'failed',
      response: { message: expect.stringContaining('No BizRuntimeContext found for biz: biz1') },
    });
    expect((await rig.end(install)).outcome).toBe('executed');
    expect(rig.states()).toEqual({ 'biz1:2': 'ACTIVATED' });
    const late = rig.end(rig.arklet.uninstallBiz(ONE));
    expect((await late).outcome).toBe('refused:NOT_FOUND_BIZ');
  });

  it('is installed anew with uninstallThenInstall when it is there already', async () => {
    await rig.end(rig.arklet.installBiz(ONE));
    const reply = await rig.end(rig.arklet.installBiz({ ...ONE, installStrategy: 'uninstallThenInstall' }));
    expect(reply.outcome).toBe('executed');
  });
});
