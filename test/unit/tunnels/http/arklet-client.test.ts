import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArkletClient, type ArkletRequest } from '../../../../tunnels/http/command-dispatcher.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { wideReader } from './http-world.ts';
import { CONTINUE, RawBase, type RawConnection } from './raw-base.ts';

const PAYLOAD = '{"bizName":"biz1"}';
const OK = 'HTTP/1.1 200 OK\r\n\r\n{"code":"SUCCESS"}';
const NOT_CONNECTED = { code: 'Tunnel.NotConnected' };
const SEND_FAILED = { code: 'Tunnel.SendFailed' };

describe('ArkletClient', () => {
  let clock: FakeClock;
  let base: RawBase;
  let client: ArkletClient;
  let stop: AbortController;
  let refused: number;
  let isOurs: (identity: string) => boolean;

  beforeEach(async () => {
    clock = new FakeClock();
    base = await RawBase.start();
    refused = 0;
    isOurs = () => true;
    client = new ArkletClient({
      clock,
      bodies: { ofBases: wideReader(), ofStrangers: wideReader() },
      userAgent: 'tests/1 (replica-1)',
      isOurs: (identity) => isOurs(identity),
      onConnectionRefused: () => refused++,
    });
    stop = new AbortController();
  });

  afterEach(async () => {
    client.close();
    await base.close();
    expect(clock.pending).toBe(0);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  function post(part: Partial<ArkletRequest> = {}): Promise<string> {
    const answer = client.post({
      base: { identity: 'base-1', ip: '127.0.0.1', port: base.port },
      command: 'installBiz',
      payload: { bizName: 'biz1' },
      isQuestion: false,
      maxAnswerBytes: 1024 * 1024,
      leaveWithinMs: 10_000,
      timeoutMs: 60_000,
      signal: stop.signal,
      ...part,
    });
    return answer.then((body) => Buffer.from(body).toString());
  }

  const ask = (): Promise<string> => post({ isQuestion: true, leaveWithinMs: 9_000, timeoutMs: 10_000 });

  /** Lets connections wait in vain, each for a second, and returns the next one. */
  async function afterBusy(count: number): Promise<RawConnection> {
    for (let busy = 0; busy < count; busy++) {
      const connection = await base.next();
      await connection.head();
      await settle();
      clock.advance(1_000);
      await connection.closed;
    }
    return base.next();
  }

  /** Says 100 Continue to the head of a command, and takes its payload. */
  async function prove(connection: RawConnection): Promise<void> {
    await connection.head();
    connection.socket.write(CONTINUE);
    await connection.payload(PAYLOAD.length);
  }

  /** Answers the payload of a command that was sent without being asked for. */
  async function answerUnproven(connection: RawConnection, answer = OK): Promise<void> {
    await connection.payload(PAYLOAD.length);
    connection.socket.end(answer);
  }

  /** A question that the base answers without a word of 100 Continue. */
  async function learnThatExpectIsIgnored(): Promise<void> {
    const asked = ask();
    const last = await afterBusy(8);
    await last.head();
    clock.advance(1_000);
    await answerUnproven(last);
    await asked;
  }

  it('sends the head, and the payload when the base says 100 Continue', async () => {
    let leftCount = 0;
    const answered = post({ onLeft: () => leftCount++ });
    const connection = await base.next();
    const head = await connection.head();
    expect(head).toMatch(/^post \/installbiz http\/1\.1\r\n/);
    expect(head).toContain('\r\nexpect: 100-continue');
    expect(head).toContain(`\r\ncontent-length: ${PAYLOAD.length}`);
    expect(head).toContain('\r\nuser-agent: tests/1 (replica-1)');
    clock.advance(999);
    await settle();
    expect([connection.rest, leftCount]).toEqual(['', 0]);
    connection.socket.write(CONTINUE);
    expect(await connection.payload(PAYLOAD.length)).toBe(PAYLOAD);
    connection.socket.end(OK);
    expect(await answered).toBe('{"code":"SUCCESS"}');
    expect([base.connections.length, leftCount]).toEqual([1, 1]);
  });

  it('takes another connection when no 100 Continue comes within 1 s; the first never gets the payload', async () => {
    const answered = post();
    const second = await afterBusy(1);
    await prove(second);
    second.socket.end(OK);
    expect(await answered).toContain('SUCCESS');
    expect(base.connections.map(({ rest }) => rest)).toEqual(['', PAYLOAD]);
  });

  it('never sends an operation that no 100 Continue was heard for', async () => {
    const failed = expect(post()).rejects.toMatchObject({
      ...NOT_CONNECTED,
      message: 'command not sent: no event loop of the base answered 100 Continue, on 10 connections',
    });
    const last = await afterBusy(9);
    await last.head();
    clock.advance(1_000);
    await failed;
    await last.closed;
    expect(base.connections.map(({ rest }) => rest)).toEqual(Array(10).fill(''));
  });

  it.each([
    [1_499, 1],
    [1_500, 2],
  ])('takes another connection while half a second is left: within %i ms it takes %i', async (leaveWithinMs, count) => {
    const failed = expect(post({ leaveWithinMs })).rejects.toMatchObject({
      ...NOT_CONNECTED,
      message: `command not sent: no event loop of the base answered 100 Continue, on ${count} connections`,
    });
    const last = await afterBusy(count - 1);
    await last.head();
    await settle();
    clock.advance(1_000);
    await failed;
    expect(base.connections).toHaveLength(count);
  });

  it('sends a question at last without 100 Continue, and the next commands to that base at once', async () => {
    await learnThatExpectIsIgnored();
    expect(base.connections.map(({ rest }) => rest)).toEqual([...Array(8).fill(''), PAYLOAD]);
    for (const command of [ask, post]) {
      const sent = command();
      const connection = await base.next();
      expect(await connection.head()).not.toContain('expect:');
      await answerUnproven(connection);
      expect(await sent).toContain('SUCCESS');
    }
  });

  it('asks for 100 Continue again where a command without it has failed', async () => {
    await learnThatExpectIsIgnored();
    const failed = expect(post()).rejects.toMatchObject(SEND_FAILED);
    const connection = await base.next();
    await connection.payload(PAYLOAD.length);
    connection.socket.resetAndDestroy();
    await failed;
    const again = expect(post()).rejects.toMatchObject(NOT_CONNECTED);
    const next = await base.next();
    expect(await next.head()).toContain('expect:');
    next.socket.destroy();
    await again;
  });

  it('does not think that a base ignores it which says it late', async () => {
    const asked = ask();
    const last = await afterBusy(8);
    await last.head();
    clock.advance(1_000);
    await answerUnproven(last, CONTINUE + OK);
    expect(await asked).toContain('SUCCESS');
    const failed = expect(ask()).rejects.toMatchObject(NOT_CONNECTED);
    const next = await base.next();
    expect(await next.head()).toContain('expect:');
    next.socket.destroy();
    await failed;
  });

  it('gives a question up whose payload lies at a busy event loop, and tells of those before', async () => {
    const failed = expect(ask()).rejects.toMatchObject({
      ...SEND_FAILED,
      message: 'command not answered: no answer within 10000 ms, after 8 connections without 100 Continue',
    });
    const last = await afterBusy(8);
    await last.head();
    clock.advance(1_000);
    await last.payload(PAYLOAD.length);
    clock.advance(1_000);
    await failed;
    await last.closed;
  });

  it.each([
    ['417', 'HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\n\r\n'],
    ['413', 'HTTP/1.1 413 Request Entity Too Large\r\ncontent-length: 0\r\n\r\n'],
    ['500', 'HTTP/1.1 500 Internal Server Error\r\n\r\nno'],
  ])('fails with a %s in place of 100 Continue, and sends no payload', async (status, answer) => {
    const failed = expect(post()).rejects.toMatchObject({
      ...SEND_FAILED,
      message: `command not answered: the base answered HTTP ${status}`,
    });
    const connection = await base.next();
    await connection.head();
    connection.socket.write(answer);
    await failed;
    await connection.closed;
    expect([connection.rest, base.connections.length]).toEqual(['', 1]);
  });

  it('takes an answer in place of 100 Continue, and closes the connection that still waits for the payload', async () => {
    const answered = post();
    const connection = await base.next();
    await connection.head();
    connection.socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    expect(await answered).toBe('{}');
    await connection.closed;
    expect(connection.rest).toBe('');
  });

  it.each<[string, (connection: RawConnection) => void]>([
    ['hangs up', ({ socket }) => socket.end()],
    ['is reset', ({ socket }) => socket.resetAndDestroy()],
    ['says what is no HTTP', ({ socket }) => socket.end('no http\r\n\r\n')],
  ])('has sent nothing when the base %s before 100 Continue, and may have after it', async (_what, end) => {
    const before = expect(post()).rejects.toMatchObject(NOT_CONNECTED);
    const first = await base.next();
    await first.head();
    end(first);
    await before;
    const after = expect(post()).rejects.toMatchObject(SEND_FAILED);
    const second = await base.next();
    await prove(second);
    end(second);
    await after;
    expect([first.rest, base.connections.length]).toEqual(['', 2]);
  });

  it('tells that a base refuses connections, also on a later one', async () => {
    const failed = expect(post()).rejects.toMatchObject(NOT_CONNECTED);
    const first = await base.next();
    await first.head();
    await settle();
    base.refuse();
    clock.advance(1_000);
    await failed;
    expect(refused).toBe(1);
  });

  it('is stopped at once: nothing has left before 100 Continue, it may have after it', async () => {
    const before = expect(post()).rejects.toMatchObject(NOT_CONNECTED);
    const first = await afterBusy(1);
    await first.head();
    stop.abort();
    await before;
    await first.closed;
    expect([first.rest, base.connections.length]).toEqual(['', 2]);
    stop = new AbortController();
    const after = expect(post()).rejects.toMatchObject(SEND_FAILED);
    const second = await base.next();
    await prove(second);
    stop.abort();
    await after;
    await second.closed;
    await expect(post()).rejects.toMatchObject(NOT_CONNECTED);
    expect(base.connections).toHaveLength(3);
  });

  const NOT_ALLOWED = { ...NOT_CONNECTED, message: 'command not sent: another replica may lead the base' };

  it('connects to no base that it may not command', async () => {
    isOurs = (identity) => identity !== 'base-1';
    await expect(post()).rejects.toMatchObject(NOT_ALLOWED);
    const allowed = post({ base: { identity: 'base-2', ip: '127.0.0.1', port: base.port } });
    const connection = await base.next();
    await prove(connection);
    connection.socket.end(OK);
    expect(await allowed).toContain('SUCCESS');
    expect(base.connections).toHaveLength(1);
  });

  it('sends no payload to a base that it may no longer command when that says 100 Continue', async () => {
    const failed = expect(post()).rejects.toMatchObject(NOT_ALLOWED);
    const connection = await base.next();
    await connection.head();
    isOurs = () => false;
    connection.socket.write(CONTINUE);
    await failed;
    await connection.closed;
    expect([connection.rest, base.connections.length]).toEqual(['', 1]);
  });

  it('takes no other connection to a base that it may no longer command', async () => {
    const failed = expect(post()).rejects.toMatchObject(NOT_ALLOWED);
    const connection = await base.next();
    await connection.head();
    await settle();
    isOurs = () => false;
    clock.advance(1_000);
    await failed;
    await connection.closed;
    expect(base.connections).toHaveLength(1);
  });

  it('sends no payload without 100 Continue either', async () => {
    await learnThatExpectIsIgnored();
    const answers = [true, false];
    isOurs = () => answers.shift() ?? true;
    await expect(post()).rejects.toMatchObject(NOT_ALLOWED);
    const connection = await base.next();
    await connection.closed;
    expect([answers, connection.rest]).toEqual([[], '']);
  });

  it('resets every connection when it is abandoned, and works on', async () => {
    const failures = [
      expect(post()).rejects.toMatchObject({ ...NOT_CONNECTED, message: 'command not sent: given up' }),
      expect(post()).rejects.toMatchObject({ ...SEND_FAILED, message: 'command not answered: given up' }),
    ];
    const [first, second] = [await base.next(), await base.next()];
    await Promise.all([first.head(), second.head()]);
    second.socket.write(CONTINUE);
    await second.payload(PAYLOAD.length);
    client.abandon('given up');
    await Promise.all([...failures, first.closed, second.closed]);
    expect([first.isReset, second.isReset, first.rest]).toEqual([true, true, '']);
    const answered = post();
    const third = await base.next();
    await prove(third);
    third.socket.end(OK);
    expect(await answered).toContain('SUCCESS');
  });

  it('takes back what a base has not received when it is abandoned', async () => {
    const payload = { a: 'x'.repeat(1_000_000) };
    const failed = expect(post({ payload })).rejects.toMatchObject(SEND_FAILED);
    const connection = await base.next();
    await connection.head();
    connection.socket.write(CONTINUE);
    await connection.payload(1);
    connection.socket.pause();
    client.abandon('given up');
    await failed;
    connection.socket.resume();
    await connection.closed;
    expect(connection.isReset).toBe(true);
    expect(connection.rest.length).toBeLessThan(1_000_000);
  });

  it('does not send a payload above 1 MiB, and sends one of 1 MiB', async () => {
    const MIB = 1024 * 1024;
    const payloadOf = (length: number) => ({ payload: { a: 'x'.repeat(length - '{"a":""}'.length) } });
    await expect(post(payloadOf(MIB + 1))).rejects.toMatchObject(NOT_CONNECTED);
    const answered = post(payloadOf(MIB));
    const connection = await base.next();
    await connection.head();
    connection.socket.write(CONTINUE);
    expect(await connection.payload(MIB)).toHaveLength(MIB);
    connection.socket.end(OK);
    await answered;
    expect(base.connections).toHaveLength(1);
  });

  it('asks anew on each use of a connection that is kept, and leaves nothing on it', async () => {
    const answered: string[] = [];
    const sockets = new Set<number | undefined>();
    let connection: RawConnection | undefined;
    for (let count = 0; count < 20; count++) {
      const sent = post();
      connection ??= await base.next();
      await prove(connection);
      expect(connection.rest).toBe(PAYLOAD);
      connection.received = '';
      connection.socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
      answered.push(await sent);
      sockets.add(connection.socket.remotePort);
      await settle();
    }
    expect([answered.length, sockets.size, base.connections.length]).toEqual([20, 1, 1]);
    expect(clock.pending).toBe(1);
    clock.advance(4_000);
    await connection?.closed;
  });
});
