import { afterEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, command, type HttpRig, RawConnection, receiptOf, startHttpRig } from './http-rig.ts';
import { BIZ } from './rig.ts';

let rig: HttpRig;
afterEach(() => rig.stop());

const NEXT = { ...BIZ, bizVersion: '2.0.0', bizUrl: 'file:///app/biz1-2.0.0-ark-biz.jar' };

function states(): Record<string, string> {
  return Object.fromEntries(rig.base.modules().map(({ bizVersion, state }) => [bizVersion, state]));
}

function ask(name: string, body: object = {}): Promise<Answer> {
  return command(rig.base, name, body);
}

describe('commands over HTTP', () => {
  it('install, list, switch and uninstall', async () => {
    rig = await startHttpRig();
    for (const biz of [BIZ, NEXT]) expect(await ask('installBiz', biz)).toMatchObject({ code: 'SUCCESS' });
    expect(states()).toEqual({ '1.0.0': 'ACTIVATED', '2.0.0': 'DEACTIVATED' });
    expect(await ask('switchBiz', NEXT)).toEqual({
      baseIdentity: 'base-1',
      code: 'SUCCESS',
      data: { code: 'SUCCESS', message: 'Switch biz: biz1:2.0.0 is activated.' },
    });
    expect(states()).toEqual({ '1.0.0': 'DEACTIVATED', '2.0.0': 'ACTIVATED' });
    const { data } = await ask('queryAllBiz');
    expect(data.map((biz: Answer) => [biz.bizVersion, biz.bizState])).toEqual([
      ['1.0.0', 'deactivated'],
      ['2.0.0', 'activated'],
    ]);
    expect(await ask('uninstallBiz', BIZ)).toMatchObject({ code: 'SUCCESS' });
    expect(states()).toEqual({ '2.0.0': 'ACTIVATED' });
    expect(rig.fleet.history.records().map(({ command: name, outcome, tunnel }) => [name, outcome, tunnel])).toEqual(
      ['installBiz', 'installBiz', 'switchBiz', 'queryAllBiz', 'uninstallBiz'].map((name) => [
        name,
        'executed',
        'http',
      ]),
    );
  });

  it('are recorded with who sent them', async () => {
    rig = await startHttpRig();
    const { localIP, port } = rig.base;
    const headers = { 'user-agent': 'module-controller/1.2.3 (replica-1)' };
    for (const name of ['health', 'installBiz', 'nosuch']) {
      await fetch(`http://${localIP}:${port}/${name}`, { method: 'POST', headers, body: JSON.stringify(BIZ) });
    }
    expect(rig.fleet.history.records().map(({ command: name, userAgent }) => [name, userAgent])).toEqual(
      ['health', 'installBiz', 'nosuch'].map((name) => [name, headers['user-agent']]),
    );
  });

  it('install a list', async () => {
    rig = await startHttpRig();
    const { code, data } = await ask('batchInstallBiz', { bizList: [BIZ, { ...BIZ, bizName: 'biz2' }] });
    expect([code, data.message]).toEqual(['SUCCESS', 'batch install success']);
    expect(rig.base.modules()).toHaveLength(2);
    expect(await ask('batchInstallBiz')).toMatchObject({
      code: 'CMD_PROCESS_INTERNAL_ERROR',
      message: 'Internal Error: bizList is null',
    });
  });

  it('that are unknown are recorded as well', async () => {
    rig = await startHttpRig();
    expect(await ask('nosuch')).toEqual({ code: 'CMD_NOT_FOUND', message: 'please follow the doc' });
    await ask('help');
    expect(rig.fleet.history.records().map((record) => [record.command, record.outcome])).toEqual([
      ['nosuch', 'ignored:unsupported'],
      ['help', 'executed'],
    ]);
  });
});

describe('an asynchronous install', () => {
  const ASYNC = { ...BIZ, async: true, requestId: 'r1' };

  function status(requestId = 'r1'): Promise<Answer> {
    return ask('queryBizOps', { requestId }).then(({ data }) => data);
  }

  it('is answered at once, then EXECUTING, then SUCCEEDED', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, installMs: 50 });
    const started = await ask('installBiz', ASYNC);
    expect(started.data).toMatchObject({ status: 'INITIALIZED', requestId: 'r1', endTimestamp: 0 });
    expect(await status()).toMatchObject({ status: 'EXECUTING', threadName: 'ARKLET-ark-biz-ops-0-T1' });
    expect(rig.fleet.history.records({ command: 'installBiz' })).toMatchObject([{ outcome: 'in work' }]);
    clock.advance(50);
    await rig.fleet.history.waitFor({ command: 'installBiz', outcome: 'executed' });
    const ended = await status();
    expect(ended).toMatchObject({
      status: 'SUCCEEDED',
      arkBizMeta: { bizName: 'biz1', installStrategy: 'installOnly' },
    });
    expect([ended.elapsedTime, ended.endTimestamp - ended.startTimestamp]).toEqual([50, 50]);
    expect(rig.base.modules()).toMatchObject([{ state: 'ACTIVATED' }]);
  });

  it('FAILED tells why: an exception, or the words of a refusal', async () => {
    rig = await startHttpRig();
    rig.base.setFault({ bizName: 'biz1', failure: 'java.lang.OutOfMemoryError: Metaspace', times: 1 });
    await ask('installBiz', ASYNC);
    await rig.fleet.history.waitFor({ command: 'installBiz' });
    const message = 'java.lang.OutOfMemoryError: Metaspace';
    expect(await status()).toMatchObject({ status: 'FAILED', message, throwable: { message } });
    await ask('uninstallBiz', { ...BIZ, async: true, requestId: 'r2' });
    await rig.fleet.history.waitFor({ command: 'uninstallBiz' });
    const refused = await status('r2');
    expect(refused).toMatchObject({ status: 'FAILED', message: 'uninstall biz not success!' });
    expect(refused.throwable).toBeUndefined();
  });

  it('of a module whose command is in work stays INITIALIZED, with an end', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, installMs: 50 });
    const received = receiptOf(rig.fleet, 'installBiz');
    const install = ask('installBiz', BIZ);
    await received;
    await ask('installBiz', ASYNC);
    const record = await status();
    expect(record).toMatchObject({
      status: 'INITIALIZED',
      message: 'command conflict, exist unfinished command for this biz',
    });
    expect(record.endTimestamp).toBeGreaterThan(0);
    clock.advance(50);
    await install;
  });

  it('needs a request id that is new, and a valid module', async () => {
    rig = await startHttpRig();
    const thrown = (message: string) => ({ code: 'CMD_PROCESS_INTERNAL_ERROR', message: `Internal Error: ${message}` });
    const { requestId: _, ...anonymous } = ASYNC;
    expect(await ask('installBiz', anonymous)).toMatchObject(
      thrown('requestId should not be blank when async is true'),
    );
    expect(await ask('installBiz', { ...ASYNC, bizUrl: '' })).toMatchObject(thrown('bizUrl should not be blank'));
    await ask('installBiz', ASYNC);
    expect(await ask('installBiz', ASYNC)).toEqual({
      baseIdentity: 'base-1',
      code: 'FAILED',
      message: 'The request corresponding to the requestId(r1) has been executed.',
    });
    expect(await ask('queryBizOps')).toMatchObject(thrown('requestId is blank'));
    expect(await ask('queryBizOps', { requestId: 'r9' })).toEqual({
      baseIdentity: 'base-1',
      code: 'FAILED',
      message: 'Not found the corresponding ops record.',
    });
  });
});

describe('faults over HTTP', () => {
  function post(body: object = BIZ): RawConnection {
    const connection = new RawConnection(rig.base);
    connection.post('installBiz', JSON.stringify(body));
    return connection;
  }

  it('run the command and leave the connection without an answer', async () => {
    rig = await startHttpRig();
    rig.base.setFault({ command: 'installBiz', answers: 'never' });
    const connection = post();
    await rig.fleet.history.waitFor({ outcome: 'executed' });
    await ask('queryAllBiz');
    expect([connection.isOpen, connection.received]).toEqual([true, '']);
    connection.end();
  });

  it('run the command and cut the connection', async () => {
    rig = await startHttpRig();
    rig.base.setFault({ command: 'installBiz', answers: 'cut' });
    const connection = post();
    await connection.closed;
    expect(connection.received).toBe('');
    expect(rig.base.modules()).toMatchObject([{ state: 'ACTIVATED' }]);
  });

  it('put garbage in place of the answer, and answer once where MQTT answers twice', async () => {
    rig = await startHttpRig();
    rig.base.setFault({ bizName: 'biz1', garbage: '{"data":' });
    rig.base.setFault({ bizName: 'biz2', answers: 'twice' });
    const garbage = post();
    const once = post({ ...BIZ, bizName: 'biz2' });
    await Promise.all([garbage.closed, once.closed]);
    expect(garbage.received).toBe('HTTP/1.1 200 OK\r\n\r\n{"data":');
    expect(once.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it('delay the answer, not the install', async () => {
    const clock = new FakeClock();
    rig = await startHttpRig({ clock, installMs: 0 });
    rig.base.setFault({ command: 'installBiz', answerDelayMs: 60 });
    const connection = post();
    await rig.fleet.history.waitFor({ outcome: 'executed' });
    await ask('queryAllBiz');
    expect(connection.received).toBe('');
    clock.advance(60);
    await connection.closed;
    expect(connection.received).toContain('"code":"SUCCESS"');
  });

  it('make a switch fail', async () => {
    rig = await startHttpRig();
    rig.base.placeModule(BIZ);
    rig.base.setFault({ command: 'switchBiz', failure: 'java.lang.IllegalStateException: no' });
    expect(await ask('switchBiz', BIZ)).toMatchObject({
      code: 'CMD_PROCESS_INTERNAL_ERROR',
      message: 'Internal Error: java.lang.IllegalStateException: no',
    });
  });
});
