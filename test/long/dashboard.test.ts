import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import { reservePort } from '../../samples/control-plane/ports.ts';
import { eventually } from '../support/eventually.ts';
import { BUILD_TIMEOUT_MS, ensureGoTool } from '../support/go-tools/programs.ts';
import { CHART } from '../support/helm.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Platform } from '../support/platform.ts';
import { moduleDeployment } from '../support/rollouts.ts';
import { startWorld } from '../support/start-world.ts';
import type { ControllerProcess, World } from '../support/world.ts';

/** The dashboard and the alerts, as Prometheus answers them of a fleet that is well. */

const NAMESPACE = 'koupleless-system';
const dashboard = JSON.parse(readFileSync(new URL('files/dashboard.json', CHART), 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[];
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
);
/** There is nothing to count here: no message is refused, no Lease is lost, nobody reads the feed. */
const MAY_BE_EMPTY = [
  /invalid_messages|intake_refused|lease_losses|admission_reviews|webhook_certificate|export_watches|exported_services/,
];

let world: World;
let platform: Platform;
let prometheus: ChildProcess;
let directory: string;
let url: string;

beforeAll(async () => {
  await ensureGoTool('prometheus');
}, BUILD_TIMEOUT_MS);

beforeAll(async () => {
  world = await startWorld();
  platform = await Platform.install(world);
  const core = await world.startController({ IS_CLUSTER: 'true' });
  const controllers = await platform.start('platform-0', 'peer,rollout,export');
  await world.startFleet({ count: 3 });
  await eventually(async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(3));
  await controllers.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-rollout');
  url = await startPrometheus({ 'module-controller': core, 'module-platform': controllers });
  // A rate needs what was there before.
  await eventually(async () => expect((await samplesOf('up == 1')).length).toBe(2));
  await world.controlPlane.apply(moduleWorkload('shop', [{ name: 'shop' }], { replicas: 3 }) as KubeObject);
  await world.controlPlane.apply(moduleDeployment({ name: 'cart' }) as KubeObject);
  await eventually(async () => expect((await pods(world.admin)).filter(isReady)).toHaveLength(6));
});

afterAll(async () => {
  if (prometheus?.exitCode === null) {
    prometheus.kill('SIGKILL');
    await once(prometheus, 'exit');
  }
  if (directory) await rm(directory, { recursive: true, force: true });
  await platform?.stop();
  await world?.stop();
});

/** Asks both every second, with the labels that a PodMonitor gives them. */
async function startPrometheus(processes: Record<string, ControllerProcess>): Promise<string> {
  directory = await mkdtemp(join(tmpdir(), 'prometheus-'));
  const jobs = Object.entries(processes).map(async ([job, process]) => ({
    job_name: job,
    static_configs: [
      { targets: [`127.0.0.1:${await process.port('metrics')}`], labels: { namespace: NAMESPACE, pod: `${job}-0` } },
    ],
  }));
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [fileURLToPath(new URL('files/alerts.yaml', CHART))],
    scrape_configs: await Promise.all(jobs),
  };
  await writeFile(join(directory, 'prometheus.yml'), stringify(config));
  const address = `127.0.0.1:${await reservePort()}`;
  const args = [`--config.file=${directory}/prometheus.yml`, `--storage.tsdb.path=${directory}/data`];
  prometheus = spawn(await ensureGoTool('prometheus'), [...args, `--web.listen-address=${address}`], {
    stdio: 'ignore',
  });
  await eventually(async () => expect((await fetch(`http://${address}/-/ready`)).status).toBe(200));
  return `http://${address}`;
}

async function ask<T>(path: string): Promise<T> {
  const answer = (await (await fetch(`${url}/api/v1/${path}`)).json()) as { status: string; data: T; error?: string };
  expect(answer, answer.error).toMatchObject({ status: 'success' });
  return answer.data;
}

interface Sample {
  readonly value: readonly [number, string];
}

/** As Grafana asks. */
async function samplesOf(expr: string): Promise<readonly Sample[]> {
  const query = expr.replaceAll('$namespace', '.*').replaceAll('$__rate_interval', '5m');
  return (await ask<{ result: Sample[] }>(`query?query=${encodeURIComponent(query)}`)).result;
}

it.each(queries)('the panel %s shows something: %s', async (_title, expr) => {
  const isQuiet = MAY_BE_EMPTY.some((pattern) => pattern.test(expr));
  await eventually(async () => {
    const samples = await samplesOf(expr);
    if (!isQuiet) expect(samples.length).toBeGreaterThan(0);
  });
});

it('shows three bases, all with a leader and reachable, and the commands that were sent', async () => {
  const numberOf = async (title: string): Promise<number> => {
    const [, expr = ''] = queries.find(([panel]) => panel === title) ?? [];
    return Math.max(...(await samplesOf(expr)).map(({ value }) => Number(value[1])));
  };
  await eventually(async () => {
    expect([await numberOf('Bases'), await numberOf('Bases without a leader'), await numberOf('Links')]).toEqual([
      3, 0, 1,
    ]);
    expect(await numberOf('Finished commands')).toBeGreaterThan(0);
  });
});

it('no alert fires of a fleet that is well, and Prometheus can evaluate each', async () => {
  const { groups } = await ask<{ groups: { rules: { name: string; health: string; state: string }[] }[] }>('rules');
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(15);
  expect(rules.filter(({ health }) => health === 'err')).toEqual([]);
  expect(rules.filter(({ state }) => state === 'firing')).toEqual([]);
});
