import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { HELP, parseCliOptions } from '../../../samples/base-simulator/cli-options.ts';
import { command, startHttpRig } from './http-rig.ts';
import { BIZ, startRig } from './rig.ts';

const CLI = fileURLToPath(new URL('../../../samples/base-simulator/cli.ts', import.meta.url));

function run(args: string[]): {
  child: ChildProcess;
  output: () => string;
  untilOutput: (text: string) => Promise<void>;
} {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const checks = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk;
      for (const check of checks) check();
    });
  }
  const untilOutput = (text: string): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (output.includes(text)) resolve();
      };
      checks.add(check);
      check();
    });
  return { child, output: () => output, untilOutput };
}

describe('parseCliOptions', () => {
  it('has a default for every flag that needs one', () => {
    expect(parseCliOptions([], {})).toEqual({
      isQuiet: false,
      fleet: {
        brokerUrl: 'mqtt://127.0.0.1:1883',
        env: 'dev',
        count: 1,
        identityPrefix: 'base-',
        name: 'base',
        version: '1.0.0',
        clusterName: 'default',
        installMs: 800,
        uninstallMs: 100,
        clockSkewMs: 0,
        eventLoops: 4,
        maxMetaspace: -1,
        activateNewModule: false,
        legacyBizTopic: false,
      },
    });
  });

  it('takes the password from the flag before the environment', () => {
    expect(parseCliOptions([], { mqttPassword: 'env' })?.fleet.password).toBe('env');
    expect(parseCliOptions(['--password', 'flag'], { mqttPassword: 'env' })?.fleet.password).toBe('flag');
  });

  it('takes a controller in place of a broker', () => {
    const args = ['--controller', 'http://127.0.0.1:7777', '--count', '2', '--local-ip', '127.0.0.1'];
    const { brokerUrl, controllerUrl, token, count, bases } = parseCliOptions(args, { token: 'env' })?.fleet ?? {};
    expect({ brokerUrl, controllerUrl, token, count, bases }).toEqual({
      brokerUrl: undefined,
      controllerUrl: 'http://127.0.0.1:7777',
      token: 'env',
      count: undefined,
      bases: [{ localIP: '127.0.0.1' }, { localIP: '127.0.0.1' }],
    });
    expect(parseCliOptions([...args, '--token', 'flag'], { token: 'env' })?.fleet.token).toBe('flag');
    expect(parseCliOptions(['--heartbeat-ms', '500'], {})?.fleet.heartbeatMs).toBe(500);
  });

  it('takes negative numbers', () => {
    const options = parseCliOptions(['--clock-skew-ms=-60000', '--max-metaspace=268435456'], {});
    expect(options?.fleet).toMatchObject({ clockSkewMs: -60_000, maxMetaspace: 268_435_456 });
  });

  it.each([
    [['--count', '0'], "--count must be a whole number of at least 1, got '0'"],
    [['--count', '1.5'], "--count must be a whole number of at least 1, got '1.5'"],
    [['--install-ms', ''], "--install-ms must be a whole number of at least 0, got ''"],
    [['--max-metaspace=-2'], "--max-metaspace must be a whole number of at least -1, got '-2'"],
    [['--clock-skew-ms', 'x'], "--clock-skew-ms must be a whole number, got 'x'"],
    [['--broker', 'localhost'], "--broker must be an URL like mqtt://127.0.0.1:1883, got 'localhost'"],
    [['--broker', 'http://a'], "--broker must be an URL like mqtt://127.0.0.1:1883, got 'http://a'"],
    [['--controller', 'mqtt://a'], "--controller must be an URL like http://127.0.0.1:7777, got 'mqtt://a'"],
    [['--broker', 'mqtt://a', '--controller', 'http://a'], '--broker and --controller exclude each other'],
    [['--env', 'a/b'], "--env may hold letters, digits, '.', '_' and '-' only, got 'a/b'"],
    [['--identity-prefix', '+'], "--identity-prefix may hold letters, digits, '.', '_' and '-' only, got '+'"],
    [['--bogus'], "Unknown option '--bogus'"],
    [['bogus'], 'bogus'],
  ])('refuses %j', (args, message) => {
    expect(() => parseCliOptions(args, {})).toThrow(message);
  });

  it('asks for help', () => {
    expect(parseCliOptions(['--help', '--count', 'x'], {})).toBeUndefined();
  });
});

describe('the command line', () => {
  it('runs bases, tells about commands, and ends at Ctrl-C', async () => {
    const rig = await startRig({ count: 0 });
    const { child, output, untilOutput } = run(['--broker', rig.broker.url, '--count', '2', '--install-ms', '1']);
    try {
      await rig.controller.nth(2, { kind: 'heart' });
      await untilOutput(`2 bases in env dev at ${rig.broker.url}: base-1, base-2`);
      rig.controller.send('base-2', 'installBiz', BIZ);
      await untilOutput('base-2 installBiz biz1:1.0.0 executed after');
      expect(output()).toContain(`base-2 installBiz biz1:1.0.0 received ${BIZ.bizUrl}`);
      child.kill('SIGINT');
      const [code] = await once(child, 'exit');
      expect(code).toBe(0);
    } finally {
      child.kill('SIGKILL');
      await rig.stop();
    }
  });

  it('runs bases over HTTP as well, and tells where they are', async () => {
    const rig = await startHttpRig();
    const args = ['--controller', rig.controller.url, '--identity-prefix', 'cli-', '--local-ip', '127.0.0.1'];
    const { child, output, untilOutput } = run([...args, '--install-ms', '1']);
    try {
      await untilOutput(`1 bases in env dev at ${rig.controller.url}: cli-1`);
      await untilOutput('cli-1 takes commands at http://127.0.0.1:');
      const port = Number(/127\.0\.0\.1:(\d+)\n/.exec(output())?.[1]);
      await command({ localIP: '127.0.0.1', port }, 'installBiz', BIZ);
      await untilOutput('cli-1 installBiz biz1:1.0.0 executed after');
      const beats = await rig.controller.received('/heartbeat', 2);
      expect(beats.map((beat) => JSON.parse(beat.text).baseMetadata.identity)).toContain('cli-1');
    } finally {
      child.kill('SIGKILL');
      await rig.stop();
    }
  });

  it.each([
    [['--help'], 0, HELP],
    [['--count', 'x'], 2, "--count must be a whole number of at least 1, got 'x'\nTry --help.\n"],
    [
      ['--broker', 'mqtt://127.0.0.1:1'],
      1,
      '--broker: koupleless@@@base-1 cannot connect to mqtt://127.0.0.1:1: connect ECONN',
    ],
    [
      ['--controller', 'http://127.0.0.1:7777', '--local-ip', '198.51.100.1'],
      1,
      '--local-ip: base-1 cannot listen on 198.51.100.1:0: listen EADDRNOTAVAIL',
    ],
  ])('%j ends with exit code %d', async (args, exitCode, text) => {
    const { child, output } = run(args);
    const [code] = await once(child, 'close');
    expect(output()).toContain(text);
    expect(code).toBe(exitCode);
  });
});
