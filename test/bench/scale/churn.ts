import { setTimeout as delay } from 'node:timers/promises';
import { nodeNameOf } from '../../../src/labels.ts';
import { modulePod } from '../../support/manifests.ts';
import { benchCase } from '../suite.ts';
import { COST_FIGURES, costing, quantile } from './cost.ts';
import type { PodsSeen } from './observer/pod-book.ts';
import { GROUP_LABEL } from './observer/watch-line.ts';
import type { ScaleWorld } from './scale-world.ts';
import type { ScaleStage } from './stage.ts';
import { STEADY_SUBJECTS } from './subject.ts';

const PODS_EACH_SECOND = 20;
const SECONDS = 30;
const COUNT = PODS_EACH_SECOND * SECONDS;
/** Each Pod is deleted so much later: from then on one goes for each that comes. */
const LIFE_SECONDS = 10;
const DONE_WITHIN_MS = 120_000;
const PODS = '/api/v1/namespaces/default/pods';

/** Pods come and go beside all that is there. */
export const CHURN = benchCase({
  name: 'churn',
  subjects: STEADY_SUBJECTS,
  figures: {
    startupP99: {
      text: `${PODS_EACH_SECOND} Pods/s, bound to Ready without the install, p99`,
      unit: 'ms',
      atMost: 1000,
    },
    startupP50: { text: 'the same, p50', unit: 'ms' },
    ...COST_FIGURES,
  },

  async prepare(stage: ScaleStage) {
    await stage.loaded();
  },

  watched: (stage) => [stage.world.subject],

  async measure({ world }) {
    const group = `churn-${Date.now()}`;
    const { result, cost, details } = await costing(world, () => churn(world, group));
    const [startupP99, startupP50] = [quantile(result.startups, 0.99), quantile(result.startups, 0.5)];
    const { installMs } = world;
    return { values: { startupP99: startupP99 - installMs, startupP50: startupP50 - installMs, ...cost }, details };
  },
});

async function churn({ world, fleet, observer }: ScaleWorld, group: string): Promise<PodsSeen> {
  const { admin } = world;
  const bases = await fleet.identities();
  const asked: Promise<unknown>[] = [];
  const startedAt = performance.now();
  for (let tick = 0; tick < COUNT + LIFE_SECONDS * PODS_EACH_SECOND; tick++) {
    await delay(Math.max(0, startedAt + (tick * 1000) / PODS_EACH_SECOND - performance.now()));
    const [born, dying] = [tick, tick - LIFE_SECONDS * PODS_EACH_SECOND];
    if (born < COUNT) {
      const name = `${group}-${born}`;
      // Left to itself the scheduler gives them all to one Node: nothing tells these apart.
      const hostname = nodeNameOf(bases[born % bases.length] ?? '');
      asked.push(admin.post(PODS, podOn(hostname, name, group)));
    }
    if (dying >= 0) asked.push(admin.delete(`${PODS}/${group}-${dying}`));
  }
  await Promise.all(asked);
  return observer.untilPods(group, 'gone', COUNT, DONE_WITHIN_MS);
}

function podOn(hostname: string, name: string, group: string) {
  const pod = modulePod(name, [{ name }], { labels: { [GROUP_LABEL]: group } });
  const nodeSelector = { ...pod.spec.nodeSelector, 'kubernetes.io/hostname': hostname };
  return { ...pod, spec: { ...pod.spec, nodeSelector } };
}
