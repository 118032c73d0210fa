import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../samples/base-simulator/fleet.ts';
import { ApiFaultProxy, type FaultMix, NO_FAULTS, seededRandom } from '../support/api-fault-proxy.ts';
import { endStateOf, modulesOn, modulesWanted } from '../support/end-state.ts';
import { eventually } from '../support/eventually.ts';
import { modulePod, moduleWorkload } from '../support/manifests.ts';
import { isReady, isSchedulable, nodes, pods } from '../support/observe.ts';
import { Spectator } from '../support/spectator.ts';
import { startWorld } from '../support/start-world.ts';
import { type ControllerProcess, podPath, type World } from '../support/world.ts';

/** To see a run again: API_FAULT_SEED=… npx vitest run --project integration test/integration/api-faults.test.ts */
const SEED = Number(process.env.API_FAULT_SEED ?? Date.now() % 1_000_000);

/** The same work in two ENVs of one cluster: one controller speaks to the API server itself, one through the proxy. */
const CALM = 'calm';
const STORM = 'storm';
const BASES = 20;
const DEPLOYMENTS = 5;
const SINGLES = 100;
const MODULES = DEPLOYMENTS * BASES + SINGLES;

const MIX: FaultMix = { share: 0.1, watchShare: 0.5, delayShare: 0.2, maxDelayMs: 2_000, cutEveryMs: 5_000 };
const KINDS = [
  ...['429', '429 Retry-After', '500', '503', 'reset'].flatMap((kind) => [`${kind} before`, `${kind} after`]),
  ...['429', '429 Retry-After', '500', '503', 'reset', 'truncated', '410', '410 event'].map((kind) => `${kind} watch`),
  ...['truncated after', 'delayed', 'cut watch', 'cut request'],
];

let world: World;
let proxy: ApiFaultProxy;
let nodesSeen: Spectator;
const fleets = new Map<string, Fleet>();
const controllers = new Map<string, ControllerProcess>();

beforeAll(async () => {
  console.log(`API_FAULT_SEED=${SEED}`);
  world = await startWorld();
  const { controlPlane } = world;
  const { server, certificateAuthority } = controlPlane;
  proxy = await ApiFaultProxy.start({ server, certificateAuthority, random: seededRandom(SEED) });
  const kubeconfig = await controlPlane.kubeconfig({ serviceAccount: 'koupleless-system/module-controller' });
  nodesSeen = await Spectator.watch(world.admin, '/api/v1/nodes');
  proxy.mix = MIX;
  for (const [env, more] of [
    [CALM, {}],
    [STORM, { KUBECONFIG: await proxy.kubeconfig(kubeconfig) }],
  ] as const) {
    controllers.set(env, await world.startController({ ENV: env, CLIENT_ID: `controller-${env}`, ...more }));
    fleets.set(env, await world.startFleet({ env, count: BASES, identityPrefix: `${env}-` }));
  }
  await eventually(
    async () => expect((await nodes(world.admin)).filter(isSchedulable)).toHaveLength(2 * BASES),
    30_000,
  );
});

afterAll(async () => {
  nodesSeen?.stop();
  await world?.stop();
  await proxy?.stop();
});

function fleetOf(env: string): Fleet {
  const fleet = fleets.get(env);
  if (fleet === undefined) throw new Error(`no fleet ${env}`);
  return fleet;
}

/** Of both ENVs. */
async function apply(what: 'deployment' | 'pod', from: number, to: number): Promise<void> {
  for (let index = from; index < to; index++) {
    for (const env of [CALM, STORM]) {
      const name = `${what}-${index}`;
      if (what === 'deployment') {
        await world.controlPlane.apply(moduleWorkload(`${name}-${env}`, [{ name }], { env, replicas: BASES }));
      } else {
        const nodeName = `vnode.${env}-${(index % BASES) + 1}`;
        const pod = modulePod(`${name}-${env}`, [{ name }], { env, nodeName });
        await world.admin.post('/api/v1/namespaces/default/pods', pod);
      }
    }
  }
}

async function remove(what: 'deployment' | 'pod', from: number, to: number): Promise<void> {
  for (let index = from; index < to; index++) {
    for (const env of [CALM, STORM]) {
      const name = `${what}-${index}-${env}`;
      await world.admin.delete(
        what === 'pod'
          ? podPath(name)
          : `/apis/apps/v1/namespaces/default/deployments/${name}?propagationPolicy=Background`,
      );
    }
  }
}

/** Both ENVs have that many Pods, all Ready, and their bases have what the Pods ask for and nothing else. */
async function settled(perEnv: number): Promise<void> {
  await eventually(async () => {
    const all = await pods(world.admin);
    for (const env of [CALM, STORM]) {
      const ofEnv = all.filter(({ spec }) => spec.nodeName?.startsWith(`vnode.${env}-`));
      expect([env, ofEnv.length, ofEnv.filter(isReady).length]).toEqual([env, perEnv, perEnv]);
      expect(modulesOn(fleetOf(env))).toEqual(modulesWanted(ofEnv));
    }
  }, 120_000);
}

describe('an API server that cuts every stream each 5 s and fails one request in ten', () => {
  it('changes nothing in the end: the same Pods and modules as without, nothing twice, no Node leaves Ready', async () => {
    await apply('deployment', 0, DEPLOYMENTS);
    await apply('pod', 0, SINGLES);
    await settled(MODULES);
    // Some go while others come.
    await Promise.all([remove('deployment', 0, 2), remove('pod', 0, 60), apply('pod', SINGLES, SINGLES + 40)]);
    const left = MODULES - 2 * BASES - 60 + 40;
    await settled(left);
    const [calm, storm] = [await endStateOf(world.admin, CALM), await endStateOf(world.admin, STORM)];
    expect(calm).toHaveLength(left);
    expect(storm).toEqual(calm);

    await Promise.all([remove('deployment', 2, DEPLOYMENTS), remove('pod', 60, SINGLES + 40)]);
    await settled(0);
    for (const env of [CALM, STORM]) {
      const { history } = fleetOf(env);
      const outcomes = history
        .records()
        .filter(({ command }) => command === 'installBiz' || command === 'uninstallBiz');
      const count = (text: string): number =>
        outcomes.filter(({ command, outcome }) => `${command} ${outcome}` === text).length;
      expect([env, count('installBiz executed'), count('uninstallBiz executed')]).toEqual([
        env,
        MODULES + 40,
        MODULES + 40,
      ]);
      expect(outcomes.filter(({ outcome }) => outcome !== 'executed')).toEqual([]);
      expect(history.installsWhileActiveOrInWork()).toEqual([]);
    }
    expect(nodesSeen.everNotReady()).toEqual([]);

    // The storm goes on until it has done all it can do; leases and events keep it busy.
    await eventually(() => expect(KINDS.filter((kind) => proxy.count(kind) === 0)).toEqual([]), 90_000);
    expect(nodesSeen.everNotReady()).toEqual([]);
    proxy.mix = NO_FAULTS;
    console.log(JSON.stringify(Object.fromEntries([...proxy.counts].sort())));
  }, 300_000);
});
