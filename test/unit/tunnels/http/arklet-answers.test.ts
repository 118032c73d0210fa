import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArkletClient } from '../../../../tunnels/http/arklet-client.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeHttpBase } from './fake-http-base.ts';

const MIB = 1024 * 1024;

describe('the answer that an ArkletClient reads', () => {
  let base: FakeHttpBase;
  let client: ArkletClient;

  beforeEach(async () => {
    base = await FakeHttpBase.start();
    client = new ArkletClient({ clock: new FakeClock(), userAgent: 'tests/1', onConnectionRefused: () => {} });
  });
  afterEach(async () => {
    client.close();
    await base.close();
  });

  const ask = (): Promise<Uint8Array> =>
    client.post({
      base: { identity: 'base-1', ip: '127.0.0.1', port: base.port },
      command: 'health',
      payload: {},
      isQuestion: true,
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
    expect((await ask()).length).toBeGreaterThan(MIB);
  });

  it('is handed over as it came where it is compressed', async () => {
    base.respond('health', ({ response }) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip'));
    expect(Buffer.from(await ask()).toString()).toBe('no gzip');
  });
});
