import { nodeNameOf } from '../../../src/labels.ts';
import { moduleWorkload } from '../../support/manifests.ts';
import { benchCase } from '../suite.ts';
import { ReadyWatch } from './ready-watch.ts';
import { REPLICAS } from './replica-world.ts';
import type { ShardingStage } from './stage.ts';
import { busiestOf, endAndWatch } from './succession.ts';

/** Bases of the dead one on which a module is asked for at once. */
const DEPLOYMENTS = 5;
const READY_WITHIN_MS = 90_000;

/** SIGKILL to one of three replicas, and Deployments that are pinned to what it led. */
export const KILL = benchCase({
  name: 'kill',
  figures: {
    led: { text: 'from SIGKILL until others lead all its leases', unit: 's', atMost: 5 },
    halfLed: { text: 'until they lead half of them', unit: 's' },
    ready: { text: `until the last of ${DEPLOYMENTS} modules asked for on its bases is Ready`, unit: 's' },
    leases: { text: 'leases it had', unit: '' },
  },

  async prepare(stage: ShardingStage) {
    await (await stage.open('mqtt')).settle(REPLICAS);
  },

  watched: (stage) => stage.world('mqtt').living,

  async measure(stage) {
    const replicas = stage.world('mqtt');
    const { admin } = replicas.world;
    const victim = busiestOf(replicas);
    const bases = spreadOver(replicas.leases.heldBy(victim.name), DEPLOYMENTS);
    const ready = await ReadyWatch.open(admin, 'bench=after-kill');
    try {
      let since = 0;
      let applied: Promise<unknown> = Promise.resolve();
      const { led, halfLed, leases } = await endAndWatch(replicas, {
        victim,
        signal: 'SIGKILL',
        onSent: (at) => {
          since = at;
          const path = '/apis/apps/v1/namespaces/default/deployments';
          applied = Promise.all(bases.map((base) => admin.post(path, deploymentOn(base))));
          // Told below; until then it has nobody who waits for it.
          applied.catch(() => {});
        },
      });
      await applied;
      const readyAt = await ready.until(bases.length, READY_WITHIN_MS);
      return {
        values: { led, halfLed, ready: (readyAt - since) / 1000, leases },
        details: { bases, after: replicas.counts() },
      };
    } finally {
      await ready.close();
    }
  },
});

function spreadOver(bases: readonly string[], count: number): string[] {
  return bases.filter(
    (_, index) => Math.floor((index * count) / bases.length) !== Math.floor(((index - 1) * count) / bases.length),
  );
}

function deploymentOn(base: string) {
  return moduleWorkload(`after-kill-${base}`, [{ name: 'after-kill' }], {
    labels: { bench: 'after-kill' },
    spec: { nodeSelector: { 'kubernetes.io/hostname': nodeNameOf(base) } },
  });
}
