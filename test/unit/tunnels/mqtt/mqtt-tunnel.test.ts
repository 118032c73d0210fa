import type { Client, ConnectPacket } from 'aedes';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../support/fake-clock.ts';
import { mqttBaseMessages, mqttRecording, RECORDED_IDENTITY } from '../recordings.ts';
import { FakeMqttBase } from './fake-mqtt-base.ts';
import { createTestTunnel, heart, publishedText, runTestTunnel, type TestTunnel } from './mqtt-world.ts';
import { TestBroker } from './test-broker.ts';

const BASE = { identity: RECORDED_IDENTITY, ip: RECORDED_IDENTITY, port: 0 };
const BIZ = { name: 'biz1-web-single-host', version: '0.0.1-SNAPSHOT' };
const TUNNEL = 'mqtt_tunnel_provider';

async function seriesValue(
  metric: { get(): Promise<{ values: { value: number; labels: object }[] }> },
  labels: object,
) {
  const { values } = await metric.get();
  return values.find((entry) => JSON.stringify(entry.labels) === JSON.stringify({ tunnel: TUNNEL, ...labels }))?.value;
}

describe('MqttTunnel', () => {
  let broker: TestBroker;
  let world: TestTunnel;

  beforeEach(async () => {
    broker = await TestBroker.start();
    world = runTestTunnel(broker.url);
    await world.handler.first('linkUp');
  });

  afterEach(async () => {
    await world.stop();
    await broker.stop();
  });

  it('hears a recorded base as it was', async () => {
    for (const { topic, payload } of mqttBaseMessages) await broker.publish(topic, payload);
    await world.handler.first('operationResult', 6);
    const heard = world.handler.calls.map((call) => {
      if (call.on === 'operationResult') {
        const { command, outcome, code, module, state } = call.result;
        return [command, outcome, code, module?.name, state].filter(Boolean).join(' ');
      }
      if (call.on === 'moduleList') return `list ${call.modules.map(({ name, state }) => `${name} ${state}`)}`;
      return call.on;
    });
    expect(heard).toEqual([
      'linkUp',
      'baselineQuery',
      'heartbeat',
      'heartbeat',
      'list ',
      'health',
      'install done SUCCESS biz1-web-single-host ACTIVATED',
      'list biz1-web-single-host ACTIVATED',
      'install failed FAILED nope',
      'install failed FAILED',
      'uninstall done SUCCESS biz1-web-single-host',
      'uninstall already NOT_FOUND_BIZ biz1-web-single-host',
      'list ',
      'install done SUCCESS biz1-web-single-host ACTIVATED',
    ]);
  });

  it('sends the commands that a real base took, byte for byte, at QoS 1 and never retained', async () => {
    const base = await FakeMqttBase.connect(broker.url, 'default', RECORDED_IDENTITY);
    const atBroker: unknown[] = [];
    broker.aedes.authorizePublish = (_client, { qos, retain }, done) => {
      atBroker.push([qos, retain]);
      done(null);
    };
    const url = 'file:///app/biz1/biz1-web-single-host-0.0.1-SNAPSHOT-ark-biz.jar';
    await world.tunnel.queryHealth(BASE);
    await world.tunnel.queryModules(BASE);
    await world.tunnel.installModule(BASE, { ...BIZ, url, args: [], envs: {} });
    await world.tunnel.uninstallModule(BASE, BIZ);
    const recorded = mqttRecording.map(({ topic, payload }) => `${topic} ${payload}`);
    for (const command of ['health', 'queryAllBiz', 'installBiz', 'uninstallBiz']) {
      const { topic, body } = await base.received();
      expect(topic).toBe(`koupleless_default/192.0.2.2/${command}`);
      expect(recorded).toContain(`${topic} ${body}`);
      expect(await seriesValue(world.metrics.tunnelCommands, { command, result: 'sent' })).toBe(1);
    }
    expect(atBroker).toEqual(Array(4).fill([1, false]));
    await base.close();
  });

  it('does not send a command above 1 MiB, and keeps the link to the broker', async () => {
    const MIB = 1024 * 1024;
    const base = await FakeMqttBase.connect(broker.url, 'default', RECORDED_IDENTITY);
    const spec = { ...BIZ, url: 'file:///a.jar', envs: {} };
    // A character of two bytes.
    const sent = world.tunnel.installModule(BASE, { ...spec, args: ['é'.repeat(MIB / 2)] });
    await expect(sent).rejects.toMatchObject({
      code: 'Tunnel.NotConnected',
      message: expect.stringMatching(/^command not sent: it has 1048\d\d\d bytes, 1048576 are allowed$/),
    });
    await world.tunnel.installModule(BASE, { ...spec, args: ['x'.repeat(MIB - 1_000)] });
    expect((await base.received()).body.length).toBeLessThanOrEqual(MIB);
    expect(await seriesValue(world.metrics.tunnelCommands, { command: 'installBiz', result: 'not_connected' })).toBe(1);
    expect(world.handler.calls.map(({ on }) => on)).toEqual(['linkUp']);
    await base.close();
  });

  it('keeps the order of a flood of 5,000 messages', async () => {
    const base = await FakeMqttBase.connect(broker.url, 'default', 'base-1');
    const order = Array.from({ length: 5_000 }, (_, index) => index);
    await Promise.all(order.map((index) => base.publish('simpleBiz', publishedText([], index))));
    const lists = await world.handler.first('moduleList', order.length);
    expect(lists.map(({ envelope }) => envelope.publishedAt)).toEqual(order);
    expect(await seriesValue(world.metrics.tunnelMessages, { type: 'simpleBiz' })).toBe(5_000);
    await base.close();
  });

  it('does not even parse a list that the core does not want', async () => {
    const topic = 'koupleless_default/base-1/base';
    world.handler.readsLists = false;
    for (const type of ['simpleBiz', 'biz']) await broker.publish(`${topic}/${type}`, 'what nobody could read');
    await broker.publish(`${topic}/heart`, publishedText(heart('base-1')));
    await world.handler.first('heartbeat');
    expect(await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(0);
    expect(world.handler.calls.map(({ on }) => on)).not.toContain('moduleList');
    world.handler.readsLists = true;
    await broker.publish(`${topic}/biz`, publishedText([]));
    await world.handler.first('moduleList');
  });

  it('refuses what is no text, too long or of another base, and counts it', async () => {
    const topic = 'koupleless_default/base-1/base';
    await broker.publish(`${topic}/heart`, Buffer.from([0xff, 0x00, 0xfe]));
    await broker.publish(`${topic}/heart`, publishedText({ ...heart('base-1'), ballast: 'x'.repeat(1024 * 1024) }));
    await broker.publish(`${topic}/heart`, publishedText(heart('base-2')));
    await broker.publish(`${topic}/queryBaseline`, publishedText(heart('base-2').baseMetadata));
    await broker.publish('koupleless_default/Base_1/base/heart', publishedText(heart('Base_1')));
    await broker.publish(`${topic}/heart`, publishedText(heart('base-1')));
    await world.handler.first('heartbeat');
    expect(world.handler.calls.map(({ on }) => on)).toEqual(['linkUp', 'heartbeat']);
    const { tunnelInvalidMessages } = world.metrics;
    expect(await seriesValue(tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(2);
    expect(await seriesValue(tunnelInvalidMessages, { code: 'Arklet.IdentityMismatch' })).toBe(2);
    expect(await seriesValue(tunnelInvalidMessages, { code: 'Arklet.InvalidIdentity' })).toBe(1);
    const refusals = world.lines.filter(({ msg }) => msg === 'message of a base refused');
    expect(refusals.map(({ code, identity }) => `${code} ${identity}`)).toEqual([
      'Arklet.InvalidMessage base-1',
      'Arklet.IdentityMismatch base-1',
      'Arklet.InvalidIdentity Base_1',
    ]);
  });

  it('does not count the heartbeat of a base that goes down as a sign of life', async () => {
    const topic = 'koupleless_default/base-1/base/heart';
    await broker.publish(topic, publishedText({ ...heart('base-1'), state: 'Deactivated' }, 1));
    await broker.publish(topic, publishedText(heart('base-1'), 2));
    const [heartbeat] = await world.handler.first('heartbeat');
    expect(heartbeat?.envelope.publishedAt).toBe(2);
  });

  it('ignores what is retained, for nobody knows its age', async () => {
    await broker.publish('koupleless_default/old/base/heart', publishedText(heart('old')), true);
    const late = runTestTunnel(broker.url, { clientId: 'late' });
    await late.handler.first('linkUp');
    await broker.publish('koupleless_default/new/base/heart', publishedText(heart('new')));
    const [heartbeat] = await late.handler.first('heartbeat');
    expect(heartbeat?.base.identity).toBe('new');
    expect(await seriesValue(late.metrics.tunnelRetainedMessages, {})).toBe(1);
    expect(await seriesValue(late.metrics.tunnelMessages, { type: 'heart' })).toBe(1);
    await late.stop();
  });

  it('says goodbye to the broker when it is aborted', async () => {
    const joined = new Promise<Client>((resolve) => broker.aedes.once('clientReady', resolve));
    const second = runTestTunnel(broker.url, { clientId: 'second' });
    const { conn } = await joined;
    await second.handler.first('linkUp');
    const bytes: Buffer[] = [];
    conn.on('data', (chunk: Buffer) => bytes.push(chunk));
    const left = new Promise((resolve) => broker.aedes.once('clientDisconnect', resolve));
    await second.stop();
    await left;
    expect(Buffer.concat(bytes).toString('hex')).toBe('e000');
    expect(second.handler.calls.at(-1)).toEqual({ on: 'linkDown', tunnel: TUNNEL });
  });

  it('introduces itself with its client id and password, for a clean session', async () => {
    const met = new Promise<ConnectPacket>((resolve) => {
      broker.aedes.preConnect = (_client, packet, done) => {
        resolve(packet);
        done(null, true);
      };
    });
    const second = runTestTunnel(broker.url, { clientId: 'prefix@@@second', username: 'user', password: 'secret' });
    await second.handler.first('linkUp');
    const { clientId, username, password, clean, will, protocolVersion, keepalive } = await met;
    expect([username, String(password)]).toEqual(['user', 'secret']);
    expect(clientId).toMatch(/^prefix@@@second@@@[0-9a-f]{24}$/);
    // Version 4 of the protocol is MQTT 3.1.1.
    expect({ clean, will, protocolVersion, keepalive }).toEqual({ clean: true, protocolVersion: 4, keepalive: 5 });
    await second.stop();
    expect(JSON.stringify(second.lines)).not.toContain('secret');
    // Whoever knows it can throw this client out.
    expect(JSON.stringify(second.lines)).not.toContain(clientId);
  });

  describe('when there is too much to read', () => {
    const PREFIX = 'koupleless_default';
    const refused = (reason: string) => seriesValue(world.metrics.intakeRefused, { reason });
    const restart = async (options: Parameters<typeof runTestTunnel>[1]): Promise<void> => {
      await world.stop();
      world = runTestTunnel(broker.url, options);
      await world.handler.first('linkUp');
    };

    it('refuses an unknown identity that floods, unread, and hears the known one beside it', async () => {
      await restart({ senderOf: (identity) => (identity === 'base-1' ? 'Known' : 'Unknown') });
      for (let index = 0; index < 40; index++) await broker.publish(`${PREFIX}/false/base/heart`, 'no JSON');
      for (let index = 0; index < 40; index++) {
        await broker.publish(`${PREFIX}/base-1/base/heart`, publishedText(heart('base-1')));
      }
      await world.handler.first('heartbeat', 40);
      const invalid = await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' });
      expect(invalid).toBeLessThan(20);
      expect((await refused('Source')) ?? 0).toBe(40 - (invalid ?? 0));
      const logged = world.lines.filter(({ msg }) => msg === 'messages are refused unread: too many');
      expect(logged).toMatchObject([{ reason: 'Source', source: 'false' }]);
    });

    it('takes of an unknown identity 10 messages at once, then one a second', async () => {
      const clock = new FakeClock();
      await restart({ clock, senderOf: (identity) => (identity === 'base-1' ? 'Known' : 'Unknown') });
      const taken: number[] = [];
      const send = async (count: number): Promise<void> => {
        for (let index = 0; index < count; index++) await broker.publish(`${PREFIX}/false/base/heart`, 'no JSON');
        await broker.publish(`${PREFIX}/base-1/base/heart`, publishedText(heart('base-1')));
        await world.handler.first('heartbeat', taken.length + 1);
        taken.push((await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })) ?? 0);
      };
      await send(11);
      clock.advance(999);
      await send(1);
      clock.advance(1);
      await send(2);
      expect(taken).toEqual([10, 10, 11]);
      expect(await refused('Source')).toBe(3);
    });

    it('takes the fewer messages of an identity the larger they are', async () => {
      const clock = new FakeClock();
      await restart({ clock, senderOf: (identity) => (identity === 'base-1' ? 'Known' : 'Asked') });
      const taken: number[] = [];
      const send = async (count: number): Promise<void> => {
        const large = ' '.repeat(64 * 1_024);
        for (let index = 0; index < count; index++) await broker.publish(`${PREFIX}/base-2/base/health`, large);
        await broker.publish(`${PREFIX}/base-1/base/heart`, publishedText(heart('base-1')));
        await world.handler.first('heartbeat', taken.length + 1);
        taken.push((await seriesValue(world.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })) ?? 0);
      };
      await send(3);
      clock.advance(6_500);
      await send(1);
      clock.advance(500);
      await send(1);
      expect(taken).toEqual([2, 2, 3]);
      expect(await refused('Source')).toBe(2);
    });

    it('refuses a heartbeat above 16 KiB as invalid, which costs no more than one of 16 KiB', async () => {
      const clock = new FakeClock();
      await restart({ clock, senderOf: (identity) => (identity === 'base-1' ? 'Known' : 'Unknown') });
      const padded = publishedText({ ...heart('base-2'), ballast: 'x'.repeat(1_000_000) });
      for (let index = 0; index < 6; index++) await broker.publish(`${PREFIX}/base-2/base/heart`, padded);
      await broker.publish(`${PREFIX}/base-1/base/heart`, publishedText(heart('base-1')));
      const [heartbeat] = await world.handler.first('heartbeat');
      expect(heartbeat?.base.identity).toBe('base-1');
      const { tunnelInvalidMessages } = world.metrics;
      expect(await seriesValue(tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(5);
      expect(await refused('Source')).toBe(1);
      expect(world.lines).toContainEqual(
        expect.objectContaining({ reason: `payload has ${padded.length} bytes, 16384 are allowed` }),
      );
    });

    it('reads the answers of those only that it knows or asked', async () => {
      const senders = { 'base-1': 'Known', 'base-2': 'Asked', 'base-3': 'Unknown' } as const;
      await restart({ senderOf: (identity) => senders[identity as keyof typeof senders] });
      for (const identity of ['base-3', 'base-2', 'base-1']) {
        await broker.publish(`${PREFIX}/${identity}/base/simpleBiz`, publishedText([]));
      }
      await world.handler.first('moduleList', 2);
      const heard = world.handler.calls.flatMap((call) => (call.on === 'moduleList' ? [call.envelope.identity] : []));
      expect(heard).toEqual(['base-2', 'base-1']);
    });
  });
});

describe('a MqttTunnel that does not hear all bases', () => {
  it('reads of the others only that they are there, and counts the rest', async () => {
    const broker = await TestBroker.start();
    const asked: string[] = [];
    const isOurs = (identity: string): boolean => {
      asked.push(identity);
      return identity === 'base-1';
    };
    const world = runTestTunnel(broker.url, { isOurs });
    await world.handler.first('linkUp');
    const { baseMetadata } = heart('base-2');
    const response = { code: 'FAILED', message: 'no' };
    for (const [type, data] of [
      ['heart', heart('base-2')],
      ['heart', { ...heart('base-2'), state: 'deactivated' }],
      ['queryBaseline', baseMetadata],
      ['health', { code: 'FAILED' }],
      ['simpleBiz', []],
      ['biz', 'what nobody could read'],
      ['bizOperation', { command: 'installBiz', response }],
      ['batchInstallBizResponse', { response }],
    ] as const) {
      await broker.publish(`koupleless_default/base-2/base/${type}`, publishedText(data));
    }
    await broker.publish('koupleless_default/base-1/base/biz', publishedText([]));
    await world.handler.first('moduleList');
    const told = world.handler.calls.flatMap((call) =>
      'envelope' in call ? [`${call.envelope.identity} ${call.on}`] : [],
    );
    expect(told).toEqual(['base-2 heartbeat', 'base-2 goingDown', 'base-2 baselineQuery', 'base-1 moduleList']);
    expect(asked).toEqual([...Array(5).fill('base-2'), 'base-1']);
    const { tunnelMessages, tunnelInvalidMessages } = world.metrics;
    expect(await seriesValue(tunnelMessages, { type: 'biz' })).toBe(2);
    expect(await seriesValue(tunnelMessages, { type: 'health' })).toBe(1);
    expect(await seriesValue(tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(0);
    await world.stop();
    await broker.stop();
  });
});

describe('a MqttTunnel that does not run', () => {
  it('has every series at 0', async () => {
    const { metrics } = createTestTunnel('mqtt://127.0.0.1:1');
    const text = await metrics.registry.metrics();
    const series = text.split('\n').filter((line) => line.startsWith('module_controller_tunnel_'));
    expect(series).toHaveLength(7 + 3 + 4 * 3 + 1 + 1 + 1);
    for (const line of series) expect(line).toMatch(/tunnel="mqtt_tunnel_provider".* 0$/);
  });

  it('is not up, proves nothing and sends nothing', async () => {
    const { tunnel, metrics } = createTestTunnel('mqtt://127.0.0.1:1');
    expect(tunnel.isUp()).toBe(false);
    expect(await tunnel.probeLink(5_000)).toBe(false);
    await expect(tunnel.queryModules(BASE)).rejects.toMatchObject({ code: 'Tunnel.NotConnected' });
    expect(await seriesValue(metrics.tunnelCommands, { command: 'queryAllBiz', result: 'not_connected' })).toBe(1);
  });

  it.each(['http://127.0.0.1:1883', 'not a url', 'mqtt://'])('refuses %s for a broker URL', async (url) => {
    await expect(runTestTunnel(url).running).rejects.toThrow(TypeError);
  });
});
