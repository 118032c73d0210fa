import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectAsync, type MqttClient } from 'mqtt';
import { describe, expect, it } from 'vitest';
import { findMosquitto, type Mosquitto, startMosquitto } from '../../../samples/broker/mosquitto.ts';
import { RECOMMENDED_SETTINGS } from '../../../samples/broker/mosquitto-config.ts';
import { poll } from '../../../samples/control-plane/poll.ts';
import { readText } from '../../unit/docs/sources.ts';
import { describeBroker } from './contract.ts';

const MODULE = new URL('../../../samples/broker/mosquitto.ts', import.meta.url).href;

describeBroker('Mosquitto', (only) => startMosquitto(only ? { users: { [only.username]: only.password } } : {}));

describe('a Mosquitto', () => {
  it('has the settings that docs/install.md recommends', () => {
    for (const line of RECOMMENDED_SETTINGS.trim().split('\n'))
      expect(readText('docs/install.md')).toContain(`\n${line}\n`);
  });

  it('holds users to an acl_file: what they may not do is dropped without a word', async () => {
    const users = { writer: 'w', reader: 'r' };
    const acl = 'user writer\ntopic write allowed/#\nuser reader\ntopic read #\n';
    const broker = await startMosquitto({ users, acl });
    const [writer, reader] = await Promise.all([as(broker, 'writer', 'w'), as(broker, 'reader', 'r')]);
    const received: string[] = [];
    reader.on('message', (topic) => received.push(topic));
    await reader.subscribeAsync('#', { qos: 1 });
    const seen = new Promise<void>((resolve) => reader.on('message', (topic) => topic === 'allowed/end' && resolve()));
    for (const topic of ['forbidden', 'allowed/a', 'allowed/end']) await writer.publishAsync(topic, 'x', { qos: 1 });
    await seen;
    expect(received).toEqual(['allowed/a', 'allowed/end']);
    await Promise.all([writer.endAsync(), reader.endAsync()]);
    await broker.stop();
  });

  it('that does not start says why, and leaves nothing', async () => {
    const temporary = await mkdtemp(join(tmpdir(), 'mosquitto-test-'));
    const before = process.env.TMPDIR;
    process.env.TMPDIR = temporary;
    await expect(startMosquitto({ settings: 'no_such_setting true' })).rejects.toThrow(/no_such_setting/);
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    await rmdir(temporary); // fails unless it is empty
  });

  it('ends with its owner, also when that is killed', async () => {
    const script = `
      const { startMosquitto } = await import(${JSON.stringify(MODULE)});
      console.log((await startMosquitto()).port);`;
    const owner = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface(owner.stdout), 'line')) as [string];
    const directory = directoriesOf(Number(line))[0] ?? '';
    expect(await isListening(Number(line))).toBe(true);
    owner.kill('SIGKILL');
    await poll(async () => (!(await isListening(Number(line))) && !existsSync(directory)) || undefined, {
      what: 'the broker of the killed owner to be gone, with its directory',
      timeoutMs: 10_000,
    });
  });
});

describe('findMosquitto', () => {
  it('takes what MOSQUITTO_BIN names, and nothing else then', async () => {
    expect(await findMosquitto({ MOSQUITTO_BIN: '/bin/sh', PATH: '' })).toBe('/bin/sh');
    await expect(findMosquitto({ MOSQUITTO_BIN: '/no/such' })).rejects.toThrow('MOSQUITTO_BIN=/no/such is no program');
  });

  it('finds it outside of PATH, or says what to install', async () => {
    const found = findMosquitto({ PATH: '/no/such' });
    if (existsSync('/usr/sbin/mosquitto')) expect(await found).toBe('/usr/sbin/mosquitto');
    else await expect(found).rejects.toThrow('Mosquitto is not installed: install version 2');
  });
});

function as(broker: Mosquitto, username: string, password: string): Promise<MqttClient> {
  return connectAsync(broker.url, { protocolVersion: 4, reconnectPeriod: 0, username, password });
}

/** Those of the brokers that listen on this port. */
function directoriesOf(port: number): string[] {
  const candidates = readdirSync(tmpdir()).filter((name) => name.startsWith('mosquitto-'));
  return candidates
    .map((name) => join(tmpdir(), name))
    .filter((directory) => {
      const config = join(directory, 'mosquitto.conf');
      return existsSync(config) && readFileSync(config, 'utf8').includes(`listener ${port} `);
    });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
