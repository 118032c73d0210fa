import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { moduleSpecsOf } from '../../../src/pod/module-spec.ts';
import { byCreation } from '../../../src/pod/vpod.ts';
import { type ModuleKey, moduleKeyOf } from '../../../src/tunnel/module.ts';
import { runsOf } from '../../support/property-runs.ts';
import { HandoverModel, type HandoverStory, isLiving, isReady } from './handover-model.ts';

const KEYS = ['biz1:1', 'biz1:2', 'biz1:3', 'biz1:4'];
const NEVER = 100_000;

function stories(of: Pick<HandoverStory, 'canSwitch' | 'activatesNew'>): fc.Arbitrary<HandoverStory> {
  const pod = fc.record({
    key: fc.constantFrom(...KEYS),
    createdIn: fc.nat({ max: 80 }),
    deletedIn: fc.option(fc.integer({ min: 1, max: 20 }), { nil: NEVER }),
    isForced: fc.constantFrom(false, false, true),
    sleepSteps: fc.constantFrom(0, 0, 10),
  });
  return fc
    .record({
      pods: fc.uniqueArray(pod, { minLength: 2, maxLength: 7, selector: ({ createdIn }) => createdIn }),
      takes: fc.array(fc.constantFrom(0, 1, 1, 2, 5, 30), { maxLength: 12 }),
      isLost: fc.array(fc.constantFrom(false, false, false, true), { maxLength: 12 }),
      fails: fc.array(fc.constantFrom(false, false, false, true), { maxLength: 12 }),
      late: fc.array(fc.constantFrom(0, 0, 1, 4), { maxLength: 12 }),
      twice: fc.array(fc.boolean(), { maxLength: 12 }),
      newLeadersIn: fc.array(fc.nat({ max: 100 }), { maxLength: 2 }),
      listEvery: fc.constantFrom(1, 3, 15),
      listsLate: fc.constantFrom(0, 0, 1),
    })
    .map(({ pods, ...rest }) => ({
      ...of,
      ...rest,
      pods: pods.map((each) => ({ ...each, deletedIn: each.createdIn + each.deletedIn })),
    }));
}

function holds(of: Parameters<typeof stories>[0], check: (model: HandoverModel) => void): void {
  const played = (story: HandoverStory): void => check(new HandoverModel(story).play());
  fc.assert(fc.property(stories(of), played), { numRuns: runsOf(100) });
}

/** The version of the Pod that was created last. */
function youngestOf({ pods }: HandoverModel): ModuleKey | undefined {
  return [...pods].filter(isLiving).sort(byCreation).flatMap(moduleSpecsOf).map(moduleKeyOf).at(-1);
}

describe.each([
  ['with switchBiz that activates what is new', { canSwitch: true, activatesNew: true }],
  ['with switchBiz that keeps what was first', { canSwitch: true, activatesNew: false }],
  ['without switchBiz that activates what is new', { canSwitch: false, activatesNew: true }],
  ['without switchBiz that keeps what was first', { canSwitch: false, activatesNew: false }],
])('whatever happens to Pods and commands, a base %s', (_, of) => {
  it('loses no active version while another can take over, and ends with the version of the youngest Pod', () => {
    holds(of, (model) => {
      const { pods, base, faults, sent } = model;
      const story = sent.join('\n');
      expect(faults, story).toEqual([]);
      expect(pods.filter((pod) => !isLiving(pod))).toEqual([]);
      const wanted = new Set(pods.flatMap(moduleSpecsOf).map(moduleKeyOf));
      expect(new Set(base.list().map(moduleKeyOf)), story).toEqual(wanted);
      const active = base.list().filter(({ state }) => state === 'ACTIVATED');
      expect(active, story).toHaveLength(wanted.size === 0 ? 0 : 1);
      const mayChoose = of.canSwitch || of.activatesNew;
      if (mayChoose) expect(active.map(moduleKeyOf), story).toEqual([youngestOf(model)].filter(Boolean));
      for (const pod of pods) {
        const isActive = moduleSpecsOf(pod).every((spec) => base.stateOf(moduleKeyOf(spec)) === 'ACTIVATED');
        expect(isReady(pod), story).toBe(isActive);
      }
    });
  });
});
