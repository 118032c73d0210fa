import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FleetOptions } from '../../../samples/base-simulator/fleet.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { command, type HttpRig, RawConnection, receiptOf, startHttpRig } from './http-rig.ts';
import { BIZ } from './rig.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const SLOW_MS = 40_000;
const OTHER = { bizName: 'other', bizVersion: '1' };

let clock: FakeClock;
let rig: HttpRig;
let connections: RawConnection[];

beforeEach(() => {
  clock = new FakeClock();
  connections = [];
});

afterEach(async () => {
  for (const connection of connections) connection.end();
  await rig.stop();
});

async function start(options: Partial<FleetOptions> = {}): Promise<void> {
  rig = await startHttpRig({ clock, installMs: SLOW_MS, uninstallMs: 0, ...options });
}

function connect(): RawConnection {
  const connection = new RawConnection(rig.base);
  connections.push(connection);
  return connection;
}

/** One event loop works on an install until the clock is moved. */
async function startSlowInstall(): Promise<RawConnection> {
  const received = receiptOf(rig.fleet, 'installBiz');
  const connection = connect();
  connection.post('installBiz', JSON.stringify(BIZ));
  await received;
  return connection;
}

function commandsRun(): string[] {
  return rig.fleet.history.records().map(({ command: name, outcome }) => `${name} ${outcome}`);
}

describe('the event loops of a base over HTTP', () => {
  it('take connections in turn: every fourth waits for the install that is in work on its loop', async () => {
    await start();
    const install = await startSlowInstall();
    const asked = Array.from({ length: 8 }, (_, index) => {
      const connection = connect();
      connection.post(index % 2 === 0 ? 'health' : 'queryAllBiz', '{}');
      return connection;
    });
    await Promise.all(asked.filter((_, index) => index % 4 !== 3).map(({ closed }) => closed));
    expect(asked.map(({ received }) => received === '')).toEqual(asked.map((_, index) => index % 4 === 3));
    clock.advance(SLOW_MS);
    await Promise.all([install, ...asked].map(({ closed }) => closed));
    for (const { received } of asked) expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n\r\n\{.*\}$/);
  });

  it('are as many as it has, and wait for nothing that is asynchronous', async () => {
    await start({ eventLoops: 1 });
    const started = await command(rig.base, 'installBiz', { ...BIZ, async: true, requestId: 'r1' });
    expect(started.data.status).toBe('INITIALIZED');
    expect((await command(rig.base, 'queryBizOps', { requestId: 'r1' })).data.status).toBe('EXECUTING');
    const slow = command(rig.base, 'installBiz', { ...BIZ, bizName: 'biz2' });
    await rig.fleet.history.waitFor({ command: 'queryBizOps' });
    await receiptOf(rig.fleet, 'installBiz');
    const question = command(rig.base, 'queryAllBiz', {});
    clock.advance(SLOW_MS);
    expect((await slow).code).toBe('SUCCESS');
    expect((await question).data).toHaveLength(2);
  });

  it('are busy until the answer is there, and free when it is lost', async () => {
    await start({ eventLoops: 1, installMs: 0 });
    rig.base.setFault({ bizName: 'biz1', answers: 'never' });
    rig.base.setFault({ bizName: 'late', answerDelayMs: 60 });
    connect().post('installBiz', JSON.stringify(BIZ));
    const late = connect();
    late.post('installBiz', JSON.stringify({ ...BIZ, bizName: 'late' }));
    await rig.fleet.history.waitFor({ bizName: 'late', outcome: 'executed' });
    await settle();
    const question = connect();
    question.expect('queryAllBiz');
    clock.advance(59);
    expect([late.received, question.received]).toEqual(['', '']);
    clock.advance(1);
    await Promise.all([late.closed, question.has(CONTINUE)]);
  });

  it('die with the process, and what waits there is not run', async () => {
    await start({ eventLoops: 1 });
    await startSlowInstall();
    const waiting = connect();
    waiting.post('uninstallBiz', JSON.stringify(OTHER));
    await rig.base.kill();
    await waiting.closed;
    await rig.base.restart();
    expect((await command(rig.base, 'queryAllBiz', {})).data).toEqual([]);
    expect(commandsRun()).toEqual(['installBiz died', 'queryAllBiz executed']);
  });
});

describe('100 Continue', () => {
  it('is said when asked for, and the answer to the body is as always', async () => {
    await start();
    const connection = connect();
    connection.expect('queryAllBiz');
    await connection.has(CONTINUE);
    expect(commandsRun()).toEqual([]);
    connection.write('{}');
    await connection.closed;
    expect(connection.received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n\r\n\{.*\}$/);
  });

  it('is said to a body that did not wait for it', async () => {
    await start();
    const connection = connect();
    connection.expect('queryAllBiz');
    connection.write('{}');
    await connection.closed;
    expect(connection.received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n\r\n\{.*\}$/);
  });

  it.each([
    ['a body that is too large', { length: 1024 * 1024 + 1 }, '413 Request Entity Too Large'],
    ['another expectation', { expectation: 'milk' }, '417 Expectation Failed'],
  ])('is not said to %s', async (_what, head, status) => {
    await start();
    const connection = connect();
    connection.expect('installBiz', head);
    await connection.closed;
    expect(connection.received).toBe(`HTTP/1.1 ${status}\r\n\r\n`);
    expect(commandsRun()).toEqual([]);
  });

  it('comes when the loop is free', async () => {
    await start({ eventLoops: 2 });
    await startSlowInstall();
    const [free, busy] = [connect(), connect()];
    for (const connection of [free, busy]) connection.expect('health');
    await free.has(CONTINUE);
    expect(busy.received).toBe('');
    clock.advance(SLOW_MS);
    await busy.has(CONTINUE);
  });

  it('does not come from a base that is silent', async () => {
    await start();
    rig.base.silence();
    const connection = connect();
    connection.expect('installBiz');
    connection.write('{}');
    await rig.fleet.history.waitFor({ outcome: 'ignored:silent' });
    rig.base.speak();
    await command(rig.base, 'queryAllBiz', {});
    expect([connection.isOpen, connection.received]).toEqual([true, '']);
  });
});

describe.each(['close', 'reset'] as const)('what lies at a busy loop when its client has gone (%s)', (how) => {
  it('is run all the same when it was whole', async () => {
    await start({ eventLoops: 1 });
    rig.base.placeModule(OTHER);
    const install = await startSlowInstall();
    const gone = connect();
    gone.post('uninstallBiz', JSON.stringify(OTHER));
    await gone.leave(how);
    expect(commandsRun()).toEqual(['installBiz in work']);
    clock.advance(SLOW_MS);
    await install.closed;
    await rig.fleet.history.waitFor({ command: 'uninstallBiz', outcome: 'executed' });
    expect(rig.base.modules().map(({ bizName }) => bizName)).toEqual(['biz1']);
  });

  it('is not run when the body never came', async () => {
    await start({ eventLoops: 1 });
    rig.base.placeModule(OTHER);
    const install = await startSlowInstall();
    const gone = connect();
    gone.expect('uninstallBiz', { length: JSON.stringify(OTHER).length });
    await gone.leave(how);
    clock.advance(SLOW_MS);
    await install.closed;
    expect((await command(rig.base, 'queryAllBiz', {})).data).toHaveLength(2);
    expect(commandsRun()).toEqual(['installBiz executed', 'queryAllBiz executed']);
  });
});
