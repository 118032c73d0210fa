import { afterEach, describe, expect, it } from 'vitest';
import { firstExternalAddress } from '../../../samples/base-simulator/external-address.ts';
import { startFleet } from '../../../samples/base-simulator/fleet.ts';
import { command, type HttpRig, RawConnection, startHttpRig } from './http-rig.ts';
import { type RecordedExchange, recordedExchanges, recordedHeartbeats } from './recordings.ts';
import { BIZ, ENV } from './rig.ts';
import { shapeOf } from './shape.ts';

const IDENTITY = '192.0.2.2';
const RECORDED_BASE = { identity: IDENTITY, name: 'TO_BE_IMPLEMENTED', localHostName: IDENTITY };
const MIB = 1024 * 1024;

let rig: HttpRig;
afterEach(() => rig.stop());

/** Sends what the recorded base was sent, and returns what the simulated one answered. */
async function replay(): Promise<{ recorded: RecordedExchange; text: string }[]> {
  rig = await startHttpRig({ bases: [RECORDED_BASE] });
  rig.fleet.setFault({
    urlIncludes: 'nope.jar',
    failure: 'java.io.FileNotFoundException: /nope.jar (No such file or directory)',
  });
  const answers: { recorded: RecordedExchange; text: string }[] = [];
  for (const recorded of recordedExchanges().filter(({ answer }) => answer !== undefined)) {
    const connection = new RawConnection(rig.base);
    connection.post(recorded.command, recorded.body);
    await connection.closed;
    answers.push({ recorded, text: connection.received });
    if (recorded.body.includes('"async"')) await rig.fleet.history.waitFor({ bizName: 'nope' });
  }
  return answers;
}

function jsonOf(text: string): Record<string, unknown> {
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
}

describe('the answers of a simulated base over HTTP', () => {
  it('have the keys and types of the recorded ones', async () => {
    const answers = await replay();
    expect(answers.map(({ recorded }) => recorded.command)).toEqual([
      'health',
      'queryAllBiz',
      'installBiz',
      'installBiz',
      'queryAllBiz',
      'installBiz',
      'queryBizOps',
      'uninstallBiz',
      'uninstallBiz',
      'help',
      'nosuch',
    ]);
    for (const { recorded, text } of answers.slice(1)) {
      const wanted = JSON.parse(recorded.answer ?? '');
      const got = jsonOf(text);
      // What the exception holds was cut out of the recording.
      if (recorded.command === 'queryBizOps') Object.assign(got.data as object, { throwable: {} });
      expect(shapeOf(got), recorded.command).toEqual(shapeOf(wanted));
    }
  });

  it('say the recorded words, where these do not depend on time and place', async () => {
    const answers = await replay();
    const isExact = ({ command: name, answer = '' }: RecordedExchange): boolean =>
      ['uninstallBiz', 'help', 'nosuch'].includes(name) || answer.includes('REPEAT_BIZ') || answer.endsWith('[]}');
    const exact = answers.filter(({ recorded }) => isExact(recorded));
    expect(exact).toHaveLength(6);
    for (const { recorded, text } of exact) expect(jsonOf(text)).toEqual(JSON.parse(recorded.answer ?? ''));
  });

  it('have states in lower case, health included', async () => {
    const [health, , install, , list] = await replay();
    const recordedInfo = /"masterBizInfo":(\{.*?\})/.exec(health?.recorded.answer ?? '')?.[1] ?? '';
    const healthData = jsonOf(health?.text ?? '').data as { healthData: { masterBizInfo: unknown } };
    expect(healthData.healthData.masterBizInfo).toEqual({ ...JSON.parse(recordedInfo), bizName: RECORDED_BASE.name });
    for (const answer of [install, list]) expect(answer?.text).toContain('"bizState":"activated"');
  });

  it('are a status line and a body, and the end of the connection', async () => {
    const answers = await replay();
    for (const { text } of answers) expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n\r\n\{.*\}$/);
  });

  it('do not come for a body that is no JSON object; the connection stays', async () => {
    rig = await startHttpRig();
    const connections = ['zzz', '[]', '"x"'].map((body) => {
      const connection = new RawConnection(rig.base);
      connection.post('installBiz', body);
      return connection;
    });
    await rig.fleet.history.waitFor({ outcome: 'ignored:unparsable' }, { count: 3 });
    expect((await command(rig.base, 'queryAllBiz', {})).data).toEqual([]);
    expect(connections.map(({ isOpen, received }) => [isOpen, received])).toEqual(Array(3).fill([true, '']));
    for (const connection of connections) connection.end();
  });

  it('tell of an exception by outer code, message and stack trace', async () => {
    rig = await startHttpRig();
    const invalid = await command(rig.base, 'installBiz', {});
    expect(invalid).toEqual({
      code: 'CMD_PROCESS_INTERNAL_ERROR',
      message: 'Internal Error: bizUrl should not be blank',
      errorStackTrace: expect.stringContaining('CommandValidationException: bizUrl should not be blank\n\tat '),
    });
    const missing = await command(rig.base, 'installBiz', { ...BIZ, bizUrl: 'file:///missing.jar' });
    expect(missing).toEqual({
      code: 'CMD_PROCESS_INTERNAL_ERROR',
      message: 'Internal Error: java.io.FileNotFoundException: /missing.jar (No such file or directory)',
      errorStackTrace: expect.stringMatching(
        /ArkletRuntimeException: java\.io\.FileNotFoundException: .*\n\tat .*netty/s,
      ),
    });
  });

  it('refuse a body above 1 MiB, and what is not posted', async () => {
    rig = await startHttpRig();
    const padded = (size: number): string => JSON.stringify(BIZ).padEnd(size);
    expect(await command(rig.base, 'installBiz', padded(MIB))).toMatchObject({ code: 'SUCCESS' });
    const url = `http://127.0.0.1:${rig.base.port}/installBiz`;
    const tooLarge = await fetch(url, { method: 'POST', body: padded(MIB + 1) });
    expect(tooLarge.status).toBe(413);
    const read = await fetch(url);
    expect([read.status, await read.text()]).toEqual([500, 'POST http request only supported by arklet']);
    expect(rig.fleet.history.records()).toHaveLength(1);
  });
});

describe('the heartbeat of a simulated base over HTTP', () => {
  it('has the recorded headers and body', async () => {
    rig = await startHttpRig({ bases: [RECORDED_BASE] });
    const [recorded] = recordedHeartbeats();
    const [post] = await rig.controller.received('/heartbeat', 1);
    const place = { host: '', 'content-length': '' };
    expect({ ...post?.headers, ...place }).toEqual({ ...recorded?.headers, ...place });
    const wanted = JSON.parse(recorded?.text ?? '');
    expect(JSON.parse(post?.text ?? '')).toEqual({ ...wanted, localIP: '127.0.0.1', port: rig.base.port });
    expect(Object.keys(JSON.parse(post?.text ?? ''))).toEqual(Object.keys(wanted));
  });

  it('carries the token, as everything that a base posts', async () => {
    rig = await startHttpRig({ token: 'secret', queriesBaseline: true });
    const [beat] = await rig.controller.received('/heartbeat', 1);
    const [query] = await rig.controller.received('/queryBaseline', 1);
    for (const post of [beat, query]) expect(post?.headers.authorization).toBe('Bearer secret');
  });

  it('names the first address of this machine that others can reach, where the base listens as well', async () => {
    rig = await startHttpRig();
    const fleet = await startFleet({ controllerUrl: rig.controller.url, env: ENV, identityPrefix: 'far-' });
    try {
      const [, post] = await rig.controller.received('/heartbeat', 2);
      expect(JSON.parse(post?.text ?? '').localIP).toBe(firstExternalAddress());
      expect((await command(fleet.base('far-1'), 'queryAllBiz', {})).code).toBe('SUCCESS');
    } finally {
      await fleet.stop();
    }
  });

  it('may lie about the address', async () => {
    rig = await startHttpRig({ bases: [{ localIP: '198.51.100.9', listenAddress: '127.0.0.1' }] });
    const [post] = await rig.controller.received('/heartbeat', 1);
    expect(JSON.parse(post?.text ?? '')).toMatchObject({ localIP: '198.51.100.9', port: rig.base.port });
  });
});

describe('firstExternalAddress', () => {
  const entry = (address: string, part: object = {}) =>
    ({ address, family: 'IPv4', internal: false, netmask: '', mac: '', cidr: null, ...part }) as never;

  it('skips loopback and IPv6, and falls back to 127.0.0.1', async () => {
    rig = await startHttpRig();
    const lo = [entry('127.0.0.1', { internal: true })];
    const eth0 = [entry('fe80::1', { family: 'IPv6' }), entry('192.0.2.7'), entry('192.0.2.8')];
    expect(firstExternalAddress({ lo, eth0 })).toBe('192.0.2.7');
    expect(firstExternalAddress({ lo })).toBe('127.0.0.1');
  });
});
