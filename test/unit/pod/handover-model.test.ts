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

function holds(of: Parameters<typeof stories>[0], checked: (model: HandoverModel) => void): void {
  const played = (story: HandoverStory): void => checked(new HandoverModel(story).play());
  fc.assert(fc.property(stories(of), played), { numRuns: runsOf(100) });
}

/** The version of the Pod that was created last. */
function youngestOf({ pods }: HandoverModel): ModuleKey | undefined {
  return [...pods].filter(isLiving).sort(byCreation).flatMap(moduleSpecsOf).map(moduleKeyOf).at(-1);
}

/** The version of the youngest Pod is active in the end, no version went before another could take over. */
function check(model: HandoverModel, mayChoose: boolean): void {
  const { pods, base, faults, sent } = model;
  const story = sent.join('\n');
  expect(faults, story).toEqual([]);
  expect(pods.filter((pod) => !isLiving(pod))).toEqual([]);
  const wanted = new Set(pods.flatMap(moduleSpecsOf).map(moduleKeyOf));
  expect(new Set(base.list().map(moduleKeyOf)), story).toEqual(wanted);
  const active = base.list().filter(({ state }) => state === 'ACTIVATED');
  expect(active, story).toHaveLength(wanted.size === 0 ? 0 : 1);
  if (mayChoose) expect(active.map(moduleKeyOf), story).toEqual([youngestOf(model)].filter(Boolean));
  for (const pod of pods) {
    const isActive = moduleSpecsOf(pod).every((spec) => base.stateOf(moduleKeyOf(spec)) === 'ACTIVATED');
    expect(isReady(pod), story).toBe(isActive);
  }
}

describe.each([
  ['with switchBiz that activates what is new', { canSwitch: true, activatesNew: true }],
  ['with switchBiz that keeps what was first', { canSwitch: true, activatesNew: false }],
  ['without switchBiz that activates what is new', { canSwitch: false, activatesNew: true }],
  ['without switchBiz that keeps what was first', { canSwitch: false, activatesNew: false }],
])('whatever happens to Pods and commands, a base %s', (_, of) => {
  it('loses no active version while another can take over, and ends with the version of the youngest Pod', () => {
    holds(of, (model) => check(model, of.canSwitch || of.activatesNew));
  });
});

describe('a base that activates what is new', () => {
  const STORY = { activatesNew: true, isLost: [], fails: [], late: [], twice: [], newLeadersIn: [], listsLate: 0 };
  const pod = (key: ModuleKey, createdIn: number, deletedIn: number) => {
    return { key, createdIn, deletedIn, isForced: false, sleepSteps: 0 };
  };

  it('waits for a version that is installed again though the Pod that had run it was deleted meanwhile', () => {
    const pods = [
      pod('biz1:3', 1, 2),
      pod('biz1:1', 2, 3),
      pod('biz1:1', 28, 36),
      pod('biz1:1', 36, 47),
      pod('biz1:1', 45, NEVER),
    ];
    const fails = [false, false, false, false, true];
    const story = { ...STORY, canSwitch: true, takes: [30], isLost: [true], fails, listEvery: 15, pods };
    check(new HandoverModel(story).play(), true);
  });

  it('is not taken for one that keeps what was first by an answer that a newer list has overtaken', () => {
    const pods = [pod('biz1:1', 0, NEVER), pod('biz1:2', 1, NEVER), pod('biz1:1', 4, NEVER)];
    const unlucky = { isLost: [true, true], fails: [true, true], late: [1], newLeadersIn: [2] };
    const story = { ...STORY, canSwitch: false, takes: [], ...unlucky, listEvery: 1, pods };
    check(new HandoverModel(story).play(), true);
  });
});
