import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { findNode } from '../support/observe.ts';
import { startWorld } from '../support/start-world.ts';
import { ControllerProcess, type World } from '../support/world.ts';

const API_VERSION = 'client.authentication.k8s.io/v1';
const SERVICE_ACCOUNT = 'koupleless-system/module-controller';

let world: World;
let directory: string;
let kubeconfig: string;

/** Does `script` and notes each run; `credential` is a file that it may print. */
async function writePlugin(script: string): Promise<void> {
  const path = join(directory, 'plugin.sh');
  await writeFile(path, `#!/bin/sh\ncd "$(dirname "$0")"\necho "$1 $AUDIENCE" >> runs\n${script}\n`);
  await chmod(path, 0o755);
}

beforeAll(async () => {
  world = await startWorld();
  directory = await mkdtemp(join(tmpdir(), 'exec-kubeconfig-'));
  const document = parse(
    await readFile(await world.controlPlane.kubeconfig({ serviceAccount: SERVICE_ACCOUNT }), 'utf8'),
  );
  const [user] = document.users;
  const status = { token: user.user.token, expirationTimestamp: new Date(Date.now() + 3_600_000).toISOString() };
  await writeFile(
    join(directory, 'credential'),
    JSON.stringify({ kind: 'ExecCredential', apiVersion: API_VERSION, status }),
  );
  user.user = {
    exec: {
      apiVersion: API_VERSION,
      command: './plugin.sh',
      args: ['get-token'],
      env: [{ name: 'AUDIENCE', value: 'cluster' }],
      interactiveMode: 'Never',
    },
  };
  kubeconfig = join(directory, 'config');
  await writeFile(kubeconfig, stringify(document));
});

afterAll(async () => {
  await world?.stop();
  if (directory !== undefined) await rm(directory, { recursive: true });
});

describe('a kubeconfig whose user is a plugin', () => {
  it('lets the controller work with the token of a ServiceAccount that the plugin prints', async () => {
    await writePlugin('cat credential');
    const controller = await world.startController({ KUBECONFIG: kubeconfig });
    const readyz = `http://127.0.0.1:${await controller.port('probes')}/readyz`;
    await eventually(async () => expect((await fetch(readyz)).status).toBe(200));
    await world.startFleet({ count: 1 });
    await eventually(async () => expect(await findNode(world.admin, 'base-1')).toBeDefined());
    expect(await readFile(join(directory, 'runs'), 'utf8')).toBe('get-token cluster\n');
    expect(await controller.stop()).toBe(0);
  });

  it('ends the controller at once, with the reason, when the plugin fails at the start', async () => {
    await writePlugin('echo "please log in" >&2; exit 1');
    const controller = new ControllerProcess({ KUBECONFIG: kubeconfig, ENABLE_MQTT_TUNNEL: 'true', MQTT_BROKER: 'h' });
    expect(await controller.exited).toBe(2);
    expect(controller.tail()).toContain('plugin.sh ended with exit code 1: please log in');
  });
});
