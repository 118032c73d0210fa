import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { type ControlPlane, startControlPlane } from '../../samples/control-plane/control-plane.ts';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { REGISTRY } from '../../src/assembly/registry.ts';
import { eventually } from '../support/eventually.ts';
import { ControllerProcess } from '../support/world.ts';

const PROGRAM = fileURLToPath(new URL('../support/thing-process.ts', import.meta.url));
const THINGS = '/apis/example.com/v1/namespaces/default/things';

let controlPlane: ControlPlane;
const processes: ControllerProcess[] = [];

/** The program with the test's own controller in its registry, under a user of its own. */
async function start(user: string, env: Record<string, string>): Promise<ControllerProcess> {
  const kubeconfig = await controlPlane.kubeconfig({ user, groups: ['system:masters'] });
  const ports = { HEALTH_PROBE_PORT: '0', METRICS_PORT: '0' };
  const started = new ControllerProcess({ KUBECONFIG: kubeconfig, CLIENT_ID: user, ...ports, ...env }, undefined, [
    PROGRAM,
  ]);
  processes.push(started);
  return started;
}

function create(name: string, size: number): Promise<KubeObject> {
  return controlPlane.admin.post(THINGS, {
    apiVersion: 'example.com/v1',
    kind: 'Thing',
    metadata: { name },
    spec: { size },
  });
}

async function seenOf(name: string): Promise<number | undefined> {
  return (await controlPlane.admin.get(`${THINGS}/${name}`)).status?.seen;
}

beforeAll(async () => {
  controlPlane = await startControlPlane({ auditLog: true });
});

afterAll(async () => {
  await Promise.all(processes.map((one) => one.stop('SIGKILL')));
  await controlPlane.stop();
});

describe('a controller of another kind, in processes of its own', () => {
  it('installs its CRD, leads, reconciles, and is followed when it is killed or ends', async () => {
    const first = await start('things-a', { CONTROLLERS: 'things' });
    await first.line(({ msg }) => msg === 'started leading');
    await create('one', 1);
    await eventually(async () => expect(await seenOf('one')).toBe(1));
    const second = await start('things-b', { CONTROLLERS: 'things' });
    const probes = `http://127.0.0.1:${await second.port('probes')}/readyz`;
    await eventually(async () => expect((await fetch(probes)).status).toBe(200));

    await first.stop('SIGKILL');
    const killedAt = Date.now();
    await create('two', 2);
    await eventually(async () => expect(await seenOf('two')).toBe(2));
    const followedMs = Date.now() - killedAt;
    // The dead one has renewed its Lease 5 s before at the most; the other one looks every 5 s.
    expect(followedMs).toBeGreaterThan(9_000);
    expect(followedMs).toBeLessThan(25_000);

    const third = await start('things-c', { CONTROLLERS: 'things' });
    await eventually(async () =>
      expect((await fetch(`http://127.0.0.1:${await third.port('probes')}/readyz`)).ok).toBe(true),
    );
    expect(await second.stop()).toBe(0);
    const endedAt = Date.now();
    await create('three', 3);
    await eventually(async () => expect(await seenOf('three')).toBe(3));
    expect(Date.now() - endedAt).toBeLessThan(10_000);
    expect(second.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('is nothing to the API server where it is off', async () => {
    const user = 'vk-alone';
    const port = String(await reservePort());
    const alone = await start(user, { CONTROLLERS: 'vk', ENABLE_HTTP_TUNNEL: 'true', HTTP_TUNNEL_LISTEN_PORT: port });
    await alone.line(({ msg }) => msg === 'tunnel is up');
    const asked = (await controlPlane.requestCounts({ user }))
      .entries()
      .map(({ group, resource }) => `${group}/${resource}`);
    expect([...new Set(asked)].sort()).toEqual(['//version', '/nodes', '/pods', 'coordination.k8s.io/leases']);
  });

  it('is an error in the configuration where there is none of the name', async () => {
    const wrong = await start('wrong', { CONTROLLERS: 'thing' });
    expect(await wrong.exited).toBe(2);
    const names = [...REGISTRY.keys(), 'things'].join(',');
    expect(wrong.tail()).toContain(`no such controller: thing; there are: ${names}`);
  });
});
