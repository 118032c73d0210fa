import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BodyReader } from '../../../../tunnels/http/body-reader.ts';
import { ArkletClient } from '../../../../tunnels/http/command-dispatcher.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeHttpBase } from './fake-http-base.ts';

const MIB = 1024 * 1024;

describe('the answer that an ArkletClient reads', () => {
  let base: FakeHttpBase;
  let client: ArkletClient;
  let dropped: string[];
  let ofStrangers: BodyReader;

  beforeEach(async () => {
    base = await FakeHttpBase.start();
    dropped = [];
    const onDropped = (source: string): void => void dropped.push(source);
    ofStrangers = new BodyReader({ maxBytes: 4 * MIB, onDropped });
    client = new ArkletClient({
      clock: new FakeClock(),
      bodies: { ofBases: new BodyReader({ maxBytes: 4 * MIB, onDropped }), ofStrangers },
      userAgent: 'tests/1',
      onConnectionRefused: () => {},
    });
  });
  afterEach(async () => {
    client.close();
    await base.close();
  });

  const ask = (maxAnswerBytes = MIB, isOfStranger = false): Promise<Uint8Array> =>
    client.post({
      base: { identity: 'base-1', ip: '127.0.0.1', port: base.port },
      command: 'health',
      payload: {},
      isQuestion: true,
      isOfStranger,
      maxAnswerBytes,
      leaveWithinMs: 9_000,
      timeoutMs: 10_000,
      signal: new AbortController().signal,
    });

  it('may have 1 MiB', async () => {
    base.respond('health', ({ response }) => response.end('x'.repeat(MIB)));
    expect(await ask()).toHaveLength(MIB);
  });

  it('ends where it is seen to be longer, though the base goes on', async () => {
    base.respond('health', ({ response }) => response.write('x'.repeat(MIB + 1)));
    expect(await ask()).toHaveLength(MIB + 1);
    expect(await ask(1_000)).toHaveLength(1_001);
  });

  it('is dropped when those of all strangers are too long together, and with it its connection', async () => {
    base.respond('health', ({ response }) => response.write('x'.repeat(MIB)));
    const asked = Array.from({ length: 5 }, () => ask(MIB, true));
    const failed = await Promise.any(
      asked.map((answer) =>
        answer.then(
          () => Promise.reject(),
          (error) => error,
        ),
      ),
    );
    expect(failed).toMatchObject({
      code: 'Tunnel.SendFailed',
      message: 'command not answered: too much is under way that has not ended',
    });
    expect(dropped[0]).toBe('127.0.0.1');
    await expect.poll(() => base.openConnections()).toBeLessThan(5);
    expect(ofStrangers.byteLength).toBeLessThanOrEqual(4 * MIB);
    base.answer('health', {});
    expect(Buffer.from(await ask()).toString()).toBe('{}');
    client.abandon('the test is over');
    await Promise.allSettled(asked);
    expect(ofStrangers.byteLength).toBe(0);
  });

  it('is handed over as it came where it is compressed', async () => {
    base.respond('health', ({ response }) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip'));
    expect(Buffer.from(await ask()).toString()).toBe('no gzip');
  });
});
