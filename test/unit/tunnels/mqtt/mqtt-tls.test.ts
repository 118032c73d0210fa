import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MqttTunnelOptions } from '../../../../tunnels/mqtt/mqtt-tunnel.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { runTestTunnel, type TestTunnel } from './mqtt-world.ts';
import { TestBroker } from './test-broker.ts';

const pathOf = (name: string): string => fileURLToPath(new URL(`../testdata/tls/${name}`, import.meta.url));

/** The broker wants a client certificate of `ca.crt` and has a certificate for 127.0.0.1 from there. */
describe('a MqttTunnel over TLS', () => {
  const client = { certPath: pathOf('client.crt'), keyPath: pathOf('client.key') };
  let folder: string;
  let broker: TestBroker;
  let clock: FakeClock;
  let world: TestTunnel;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'mqtt-tls-'));
    clock = new FakeClock();
    broker = await TestBroker.start({
      tls: {
        key: readFileSync(pathOf('server.key')),
        cert: readFileSync(pathOf('server.crt')),
        ca: readFileSync(pathOf('ca.crt')),
        requestCert: true,
        rejectUnauthorized: true,
      },
    });
  });

  afterEach(async () => {
    await world.stop();
    await broker.stop();
    rmSync(folder, { recursive: true });
  });

  const start = (tls: MqttTunnelOptions['tls'], host = '127.0.0.1'): void => {
    world = runTestTunnel(`mqtts://${host}:${broker.port}`, { clock, tls });
  };

  const firstError = async (): Promise<unknown> => {
    while (world.lines.length === 0) await settle();
    return world.lines[0]?.err;
  };

  it('comes up with the right certificates', async () => {
    start({ caPath: pathOf('ca.crt'), ...client });
    await world.handler.first('linkUp');
    expect(await world.tunnel.probeLink(5_000)).toBe(true);
  });

  it('is reset under its encryption when it is abandoned', async () => {
    start({ caPath: pathOf('ca.crt'), ...client });
    await world.handler.first('linkUp');
    broker.aedes.authorizePublish = () => {};
    const sent = expect(
      world.tunnel.queryHealth({ identity: 'base-1', ip: '192.0.2.2', port: 0 }),
    ).rejects.toMatchObject({
      code: 'Tunnel.SendFailed',
    });
    const rest = broker.freeze();
    world.tunnel.abandon();
    await sent;
    await world.handler.first('linkDown');
    expect((await rest()).isReset).toBe(true);
  });

  it('trusts no broker of another certificate authority', async () => {
    start({ caPath: pathOf('other-ca.crt'), ...client });
    expect(await firstError()).toMatchObject({ message: expect.stringContaining('certificate') });
    expect(world.handler.calls).toEqual([]);
  });

  it('trusts no broker with the certificate of another host', async () => {
    // Another way to write 127.0.0.1, which the certificate does not name.
    start({ caPath: pathOf('ca.crt'), ...client }, '127.1');
    expect(await firstError()).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(world.handler.calls).toEqual([]);
  });

  it('does not come up without the certificate that the broker wants', async () => {
    start({ caPath: pathOf('ca.crt') });
    await firstError();
    expect(world.handler.calls).toEqual([]);
  });

  it('says that a broker without TLS may not take it', async () => {
    const plain = await TestBroker.start();
    world = runTestTunnel(`mqtts://127.0.0.1:${plain.port}`, { clock, tls: { caPath: pathOf('ca.crt') } });
    await firstError();
    expect(world.lines[0]?.hint).toContain('may not take TLS on this port');
    await plain.stop();
  });

  it('reads the files again at each connect', async () => {
    const caPath = join(folder, 'ca.crt');
    start({ caPath, ...client });
    expect(await firstError()).toMatchObject({ message: expect.stringContaining('ENOENT') });
    copyFileSync(pathOf('ca.crt'), caPath);
    clock.advance(30_000);
    await world.handler.first('linkUp');
    expect(world.tunnel.isUp()).toBe(true);
  });

  it('outlives files that are no certificates', async () => {
    start({ caPath: pathOf('ca.crt'), certPath: pathOf('client.key'), keyPath: pathOf('client.crt') });
    await firstError();
    expect(world.tunnel.isUp()).toBe(false);
  });
});
