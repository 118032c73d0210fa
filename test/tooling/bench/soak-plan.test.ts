import { describe, expect, it } from 'vitest';
import { type Act, flapsEachMinuteOf, type PlanOptions, planOf } from '../../bench/soak/plan.ts';

const NIGHT: PlanOptions = {
  seed: 1,
  seconds: 8 * 3600,
  bases: 50,
  replicas: 3,
  killEverySeconds: 120,
  flapsEachMinute: 1,
};

const of = (acts: readonly Act[], ...kinds: Act['kind'][]): Act[] => acts.filter(({ kind }) => kinds.includes(kind));

describe('the plan of a soak', () => {
  it('follows from the seed', () => {
    expect(planOf(NIGHT)).toEqual(planOf({ ...NIGHT }));
    expect(planOf(NIGHT)).not.toEqual(planOf({ ...NIGHT, seed: 2 }));
  });

  it('kills the other replicas in turn, never the first', () => {
    const kills = of(planOf(NIGHT), 'kill');
    expect(kills).toHaveLength(240);
    expect(kills.slice(0, 4).map(({ index, atSeconds }) => [index, atSeconds])).toEqual([
      [1, 120],
      [2, 240],
      [1, 360],
      [2, 480],
    ]);
    expect(of(planOf({ ...NIGHT, replicas: 1 }), 'kill')).toEqual([]);
  });

  it('has bases that die and such that are silent, as many each minute as asked', () => {
    expect([10, 50, 149, 150, 1000].map(flapsEachMinuteOf)).toEqual([1, 1, 1, 2, 10]);
    const flaps = of(planOf(NIGHT), 'die', 'silence');
    expect(flaps).toHaveLength(480);
    const away = of(flaps, 'die').map(({ forSeconds }) => forSeconds);
    expect(away).toHaveLength(240);
    expect(Math.min(...away)).toBeGreaterThanOrEqual(5);
    expect(Math.max(...away)).toBeLessThanOrEqual(90);
    expect(new Set(of(flaps, 'silence').map(({ forSeconds }) => forSeconds))).toEqual(new Set([30]));
  });

  it('takes no base away that is away, and ends one of them that nothing else happens to', () => {
    const acts = planOf({ ...NIGHT, bases: 10, flapsEachMinute: 3 });
    expect(of(acts, 'end')).toEqual([{ atSeconds: 8640, kind: 'end', index: 9, forSeconds: Infinity }]);
    const byBase = Map.groupBy(of(acts, 'die', 'silence'), ({ index }) => index);
    expect([...byBase.keys()].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    for (const ofBase of byBase.values()) {
      const gaps = ofBase.slice(1).map((act, at) => {
        const before = ofBase[at] ?? act;
        return act.atSeconds - before.atSeconds - before.forSeconds;
      });
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(30);
    }
  });

  it('is in the order of time, and begins nothing later than asked', () => {
    const times = planOf({ ...NIGHT, seconds: 90 }).map(({ atSeconds }) => atSeconds);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times.at(-1)).toBeLessThanOrEqual(90);
  });
});
