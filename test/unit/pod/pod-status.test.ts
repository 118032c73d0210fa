import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { VPodStatus } from '../../../src/pod/vpod.ts';
import { WAITING_REASONS } from '../../../src/pod/waiting-reason.ts';
import { makePod } from '../../support/builders.ts';
import { type Step, type Story, statusAt, tellStory } from './status-story.ts';

const FOLDER = new URL('testdata/', import.meta.url);

for (const file of readdirSync(FOLDER)) {
  const stories = parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Story[];
  describe(`a Pod that is ${file.replace('.yaml', '')}`, () => {
    it.each(stories.map((story) => [story.name, story] as const))('%s', (_, story) => {
      expect(tellStory(story)).toEqual(story.steps.map((step) => step.expect));
    });
  });
}

const REASONS = [
  'ErrImagePull',
  'RunContainerError',
  'ModuleBroken',
  'ModuleVanished',
  'BaseRestarted',
  'CrashLoopBackOff',
];
const view = fc.oneof(
  fc.constantFrom('Running', 'Unknown', 'Installing 0', 'Installing 9', 'Waiting BizDeactivated kept'),
  fc.constantFrom(...REASONS).map((reason) => `Waiting ${reason}`),
);
const step = fc.record({
  modules: fc.record({ biz1: view, biz2: view }),
  base: fc.record({ unreachable: fc.boolean(), unroutable: fc.boolean() }),
});

/** The statuses that a Pod of two modules goes through. */
function lifeOf(steps: readonly Pick<Step, 'modules' | 'base'>[], restartPolicy = 'Always') {
  let pod = makePod({ modules: ['biz1:1', 'biz2:1'], restartPolicy, uid: 'u1' });
  return steps.map((each, index) => {
    const before = pod.status;
    const after = statusAt(pod, each, index + 1);
    pod = { ...pod, status: after };
    return { before, after, again: statusAt(pod, each, index + 30), views: Object.values(each.modules) };
  });
}

function withoutGeneration(status: VPodStatus): VPodStatus {
  const conditions = status.conditions.map(({ observedGeneration: _, ...condition }) => condition);
  return { ...status, observedGeneration: undefined, conditions };
}

describe('the status of any Pod', () => {
  it('is written once: what follows from it is itself, also at another time', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        for (const { after, again } of lifeOf(steps)) expect(again).toBe(after);
      }),
    );
  });

  it('is written once also where the API server drops its generation, as Kubernetes 1.33 does', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
        let pod = makePod({ modules: ['biz1:1', 'biz2:1'] });
        steps.forEach((each, index) => {
          const next = statusAt(pod, each, index + 1);
          if (next === pod.status) return;
          expect(next.observedGeneration).toBe(1);
          pod = { ...pod, status: withoutGeneration(next) };
          expect(statusAt(pod, each, index + 30)).toBe(pod.status);
        });
      }),
    );
  });

  it('never goes back from Running, and never ends while the Pod may restart', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        for (const { before, after } of lifeOf(steps)) {
          if (before.phase === 'Running') expect(after.phase).toBe('Running');
          expect(['Pending', 'Running']).toContain(after.phase);
        }
      }),
    );
  });

  it('counts restarts upwards by one at a time, and only when the container runs', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        for (const { before, after } of lifeOf(steps)) {
          after.containerStatuses.forEach(({ restartCount, state }, index) => {
            const more = restartCount - (before.containerStatuses[index]?.restartCount ?? 0);
            expect([0, 1]).toContain(more);
            if (more === 1) expect(state?.running).toBeDefined();
          });
        }
      }),
    );
  });

  it('has each container in exactly one state, ready only when it runs', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.constantFrom('Always', 'Never'), (steps, policy) => {
        for (const { after } of lifeOf(steps, policy)) {
          for (const { state = {}, ready } of after.containerStatuses) {
            expect(Object.keys(state)).toHaveLength(1);
            expect(ready).toBe(state.running !== undefined);
          }
        }
      }),
    );
  });

  it('moves the time of a condition only with its status', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        for (const { before, after } of lifeOf(steps)) {
          for (const condition of after.conditions) {
            const old = before.conditions.find(({ type }) => type === condition.type);
            if (old?.status === condition.status) expect(condition.lastTransitionTime).toBe(old.lastTransitionTime);
          }
        }
      }),
    );
  });

  it('is ready only when every module runs and the base is reachable', () => {
    fc.assert(
      fc.property(step, ({ modules, base }) => {
        const [life] = lifeOf([{ modules, base }]);
        const ready = life?.after.conditions.find(({ type }) => type === 'Ready')?.status;
        const isReady = !base.unreachable && Object.values(modules).every((text) => text === 'Running');
        expect(ready === 'True').toBe(isReady);
      }),
    );
  });
});

it('every waiting reason has its story', () => {
  const told = readdirSync(FOLDER).map((file) => readFileSync(new URL(file, FOLDER), 'utf8'));
  for (const reason of Object.keys(WAITING_REASONS)) expect(told.join()).toContain(`waiting ${reason},`);
});
