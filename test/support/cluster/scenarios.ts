import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import {
  CUT_MS,
  cutOff,
  fourthReplica,
  LONG_MS,
  outage,
  replacedProcess,
  restartAll,
  secondProcess,
  takenOverByOthers,
  until,
} from './acts.ts';
import type { TunnelKind } from './cluster.ts';
import { atRest, balanced, holders, movesSince, renewedSince, takenOver } from './lease-waits.ts';
import type { FaultOf, Scenario } from './scenario.ts';

/** Every way to lose a replica, or what it stands on. */
const SCENARIOS: readonly Scenario[] = [
  {
    name: 'SIGSTOP of one replica after the other, each for about as long as it takes to be given up',
    of: 'processes',
    allowedLate: { 'controller-0': 1, 'controller-1': 1, 'controller-2': 1 },
    async act({ cluster, note }) {
      for (const [index, seconds] of [4.5, 5.5, 6.5].entries()) {
        const victim = cluster.replica(index);
        note(`${victim.clientId} is stopped for ${seconds} s`);
        victim.freeze();
        await delay(seconds * 1_000);
        victim.thaw();
        await renewedSince(cluster, Date.now());
      }
    },
  },
  {
    name: 'all replicas killed and restarted at once',
    of: 'replicas',
    act: (stage) => restartAll(stage, 'SIGKILL'),
  },
  {
    name: 'all replicas ended by SIGTERM and restarted at once',
    of: 'replicas',
    act: (stage) => restartAll(stage, 'SIGTERM'),
  },
  {
    name: 'a second process with the CLIENT_ID of one that lives: it waits, and takes over when that one is killed',
    of: 'names',
    act: secondProcess,
  },
  {
    name: 'a frozen process whose CLIENT_ID another one got: it ends when it goes on',
    of: 'names',
    act: replacedProcess,
  },
  {
    name: 'A-004-6: SIGKILL of one replica, then of another, until one is left',
    of: 'replicas',
    async act(stage) {
      const { cluster } = stage;
      for (const victim of [cluster.replica(0), cluster.replica(1)]) {
        const bases = cluster.basesOf(victim);
        const since = Date.now();
        await victim.end('SIGKILL');
        await takenOverByOthers(stage, victim, { bases, since });
        const [base = ''] = bases;
        await stage.deploy(`onto-${victim.clientId}`, [base]);
      }
    },
  },
  {
    name: 'SIGTERM of one replica: it hands over and ends',
    of: 'replicas',
    async act(stage) {
      const { cluster } = stage;
      const victim = cluster.replica(1);
      const bases = cluster.basesOf(victim);
      const since = Date.now();
      const ended = victim.end('SIGTERM');
      await takenOverByOthers(stage, victim, { bases, since });
      expect(await ended).toBe(0);
      stage.note(`it ended ${Date.now() - since} ms after the signal`);
    },
  },
  {
    name: 'SIGSTOP of one replica for 60 s, then SIGCONT',
    of: 'processes',
    allowedLate: { 'controller-2': 1 },
    async act(stage) {
      const { cluster } = stage;
      const victim = cluster.replica(2);
      const bases = cluster.basesOf(victim);
      const since = Date.now();
      victim.freeze();
      await takenOverByOthers(stage, victim, { bases, since });
      await until(since + LONG_MS);
      stage.note('SIGCONT');
      victim.thaw();
      await balanced(cluster, cluster.living);
    },
  },
  {
    name: 'a replica cut off from the API server only',
    of: 'api-link',
    act: (stage) => cutOff(stage, stage.cluster.replica(0), ['api']),
  },
  {
    name: 'a replica cut off from the broker only, while a Deployment on its bases rolls',
    of: 'broker',
    over: 'mqtt',
    async act(stage) {
      const { cluster } = stage;
      const victim = cluster.replica(1);
      const overMqtt = new Set(cluster.basesOver('mqtt'));
      const bases = cluster.basesOf(victim).filter((base) => overMqtt.has(base));
      const deployment = await stage.deploy('on-cut-replica', bases.slice(0, 8));
      const since = Date.now();
      stage.note('cut');
      await victim.wires('blackhole', ['broker']);
      await deployment.next();
      await deployment.untilRolled(CUT_MS);
      stage.note(`rolled ${Date.now() - since} ms after the cut`);
      await takenOver(cluster, bases, { by: [cluster.replica(0), cluster.replica(2)], since, withinMs: CUT_MS });
      await until(since + CUT_MS);
    },
  },
  {
    name: 'a replica cut off from the API server and from what bases say',
    of: 'replicas',
    async act(stage) {
      const { cluster } = stage;
      const victim = cluster.replica(2);
      if (cluster.hasService) cluster.service.remove(victim.httpPort);
      await cutOff(stage, victim, ['api', 'broker']);
    },
  },
  {
    name: 'an API server that is killed and down for 60 s',
    of: 'api',
    act: (stage) =>
      outage(stage, {
        lastsMs: LONG_MS,
        begin: async ({ world }) => void (await world.controlPlane.component('kube-apiserver').stopProcess('SIGKILL')),
        end: ({ world }) => world.controlPlane.component('kube-apiserver').start(),
      }),
  },
  {
    name: 'an API server that is frozen for 45 s, longer than a Lease is valid',
    of: 'api',
    act: (stage) =>
      outage(stage, {
        lastsMs: 45_000,
        begin: async ({ world }) => world.controlPlane.component('kube-apiserver').kill('SIGSTOP'),
        end: async ({ world }) => world.controlPlane.component('kube-apiserver').kill('SIGCONT'),
      }),
  },
  {
    name: 'an API server that is frozen for a few seconds, again and again',
    of: 'api',
    async act({ cluster, note }) {
      await atRest(cluster);
      const before = holders(cluster);
      const mark = cluster.recorder.leaseCount;
      const apiServer = cluster.world.controlPlane.component('kube-apiserver');
      for (const seconds of [3.5, 4.5, 5.5]) {
        note(`the API server is frozen for ${seconds} s`);
        apiServer.kill('SIGSTOP');
        await delay(seconds * 1_000);
        apiServer.kill('SIGCONT');
        await renewedSince(cluster, Date.now());
      }
      expect(movesSince(cluster, mark, before).join('\n')).toBe('');
    },
  },
  {
    name: 'a fourth replica: it gets its share by the fewest moves, and goes again',
    of: 'replicas',
    act: fourthReplica,
  },
  {
    name: 'bases that had contacted one replica only, which is killed',
    of: 'replicas',
    over: 'http',
    async act(stage) {
      const { cluster } = stage;
      const victim = cluster.replica(0);
      cluster.service.pin(victim.httpPort);
      const fleet = await cluster.startFleet({ over: 'http', count: 10, identityPrefix: 'pinned-' });
      const pinned = fleet.bases.map(({ identity }) => identity);
      await takenOver(cluster, pinned, { by: cluster.living, since: Date.now(), withinMs: 30_000 });
      const bases = cluster.basesOf(victim);
      const since = Date.now();
      await victim.end('SIGKILL');
      cluster.service.pin();
      await takenOverByOthers(stage, victim, { bases: [...bases, ...pinned], since });
      await stage.deploy('onto-pinned', pinned);
    },
  },
];

/** Those for which the cluster has what they need. */
export function scenariosOf({
  tunnels,
  faultsOf,
}: {
  tunnels: readonly TunnelKind[];
  faultsOf: readonly FaultOf[];
}): Scenario[] {
  return SCENARIOS.filter(({ of, over }) => faultsOf.includes(of) && (over === undefined || tunnels.includes(over)));
}
