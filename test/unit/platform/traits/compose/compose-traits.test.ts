import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Composed, composeTraits } from '../../../../../src/platform/traits/compose/compose-traits.ts';
import { canonicalJson, type Json, type JsonObject } from '../../../../../src/platform/traits/compose/json.ts';
import type { Fragment } from '../../../../../src/platform/traits/compose/merge.ts';
import {
  NO_RECORD,
  recordIn,
  recordText,
  sealed,
  type TraitRecord,
} from '../../../../../src/platform/traits/compose/record.ts';
import { runsOf } from '../../../../support/property-runs.ts';

/** A workload with a template, and what the API server keeps of it. */
function workload(podSpec: JsonObject = {}, more: JsonObject = {}): JsonObject {
  const { metadata = {}, template = {}, ...spec } = more as Record<string, JsonObject>;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', ...metadata },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'shop' } },
      ...spec,
      template: {
        metadata: { labels: { app: 'shop' }, ...template },
        spec: {
          containers: [{ name: 'shop', image: 'shop.jar', env: [{ name: 'BIZ_VERSION', value: '1' }] }],
          ...podSpec,
        },
      },
    },
  };
}

function fragment(trait: string, podSpec: JsonObject, more: JsonObject = {}): Fragment {
  return { trait, wanted: { ...more, spec: { template: { spec: podSpec } } } };
}

/** What the API server fills in. */
function withDefaults(object: Json): Json {
  const copy = structuredClone(object) as never as {
    spec: { template: { spec: { containers: Record<string, Json>[] } } };
  };
  for (const container of copy.spec.template.spec.containers) container.imagePullPolicy ??= 'IfNotPresent';
  return copy as never;
}

interface Applied extends Composed {
  readonly stored: Json;
  readonly kept: readonly string[];
  readonly after: TraitRecord;
}

/** Composes, and stores as the API server does; the record makes its way through the annotation. */
function apply(live: Json, record: TraitRecord, ...fragments: Fragment[]): Applied {
  const composed = composeTraits({ live, record, fragments });
  const stored = withDefaults(composed.object);
  const after = recordIn(recordText(sealed(stored, composed.record))) as TraitRecord;
  return { ...composed, stored, after };
}

const podSpecOf = (object: Json): JsonObject =>
  (object as never as { spec: { template: { spec: JsonObject } } }).spec.template.spec;
const bytes = (object: Json): string => JSON.stringify(object);

const GOLD: JsonObject = { key: 'pool', operator: 'Equal', value: 'gold', effect: 'NoExecute' };
const ECS: JsonObject = { key: 'ecs', operator: 'Equal', value: 'true', effect: 'NoSchedule' };

describe('what traits put into a workload', () => {
  it('comes behind what is there, in one order', () => {
    const live = workload({ tolerations: [ECS] });
    const traits = [fragment('a', { tolerations: [GOLD, { key: 'b', operator: 'Exists' }] })];
    const { object, isChanged } = apply(live, NO_RECORD, ...traits);
    expect(podSpecOf(object).tolerations).toEqual([ECS, GOLD, { key: 'b', operator: 'Exists' }]);
    expect(isChanged).toBe(true);
    const turned = [fragment('a', { tolerations: [{ operator: 'Exists', key: 'b' }, GOLD] })];
    expect(podSpecOf(apply(live, NO_RECORD, ...turned).object)).toEqual(podSpecOf(object));
  });

  it('is left alone in the next round, with what the API server has filled in', () => {
    const sidecar = { name: 'sidecar', image: 'sidecar.jar' };
    const first = apply(workload(), NO_RECORD, fragment('a', { containers: [sidecar] }));
    const again = apply(first.stored, first.after, fragment('a', { containers: [sidecar] }));
    expect([again.isChanged, bytes(again.stored)]).toEqual([false, bytes(first.stored)]);
    const changed = apply(first.stored, first.after, fragment('a', { containers: [{ ...sidecar, image: 'two.jar' }] }));
    expect(changed.isChanged).toBe(true);
    expect(bytes(apply(changed.stored, changed.after).object)).toBe(bytes(withDefaults(workload())));
  });

  it('goes without a trace, and what was there comes back', () => {
    const live = withDefaults(workload({ terminationGracePeriodSeconds: 30 }, { minReadySeconds: 5 as never }));
    const wanted = fragment(
      'a',
      {
        terminationGracePeriodSeconds: 60,
        tolerations: [GOLD],
        nodeSelector: { zone: 'a' },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'k', operator: 'Exists' }] }],
            },
          },
        },
        containers: [{ name: 'shop', env: [{ name: 'A', value: '1' }], args: ['--a'] }],
      },
      { metadata: { annotations: { note: 'x' } } },
    );
    const { stored, after, conflicts } = apply(live, NO_RECORD, wanted);
    expect(conflicts).toEqual([]);
    expect(podSpecOf(stored).terminationGracePeriodSeconds).toBe(60);
    const gone = apply(stored, after);
    expect([bytes(gone.object), gone.after, gone.kept]).toEqual([bytes(live), NO_RECORD, []]);
  });

  it('is added to each term of a node affinity, and never makes one fit', () => {
    const a = { key: 'a', operator: 'Exists' };
    const mine = { key: 'mine', operator: 'In', values: ['x'] };
    const affinityOf = (terms: Json): JsonObject => ({
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
    });
    const live = withDefaults(
      workload(affinityOf([{ matchExpressions: [a] }, {}, { matchFields: [a] }, { matchExpressions: [mine] }])),
    );
    const { stored, after } = apply(live, NO_RECORD, fragment('a', affinityOf([{ matchExpressions: [mine] }])));
    expect(podSpecOf(stored)).toMatchObject(
      affinityOf([
        { matchExpressions: [a, mine] },
        {},
        { matchFields: [a], matchExpressions: [mine] },
        { matchExpressions: [mine] },
      ]),
    );
    expect(bytes(apply(stored, after).object)).toBe(bytes(live));
    const alternatives = fragment('b', affinityOf([{ matchExpressions: [a] }, { matchExpressions: [mine] }]));
    expect(apply(live, NO_RECORD, alternatives).conflicts[0]?.message).toContain('must have one term');
  });

  it.each<[string, JsonObject, string]>([
    [
      'a scalar that the workload has',
      { terminationGracePeriodSeconds: 60 },
      'spec.template.spec.terminationGracePeriodSeconds: the workload has 45',
    ],
    [
      'another value of a variable',
      { containers: [{ name: 'shop', env: [{ name: 'BIZ_VERSION', value: '2' }] }] },
      'env["BIZ_VERSION"]: the workload has {"name":"BIZ_VERSION","value":"1"}',
    ],
    [
      'a field that there is not',
      { hostNetworking: true },
      'spec.template.spec.hostNetworking: is not a field that a trait may set',
    ],
    ['a list that is none', { tolerations: { a: 1 } }, 'spec.template.spec.tolerations: must be a list'],
    ['null', { tolerations: null }, 'spec.template.spec.tolerations: must not be null'],
  ])('is not %s', (_what, wanted, message) => {
    const live = workload({ terminationGracePeriodSeconds: 45 });
    const { object, conflicts } = apply(live, NO_RECORD, fragment('a', wanted), fragment('b', { tolerations: [GOLD] }));
    expect(conflicts.map((one) => [one.trait, one.message])).toEqual([['a', expect.stringContaining(message)]]);
    expect(podSpecOf(object).tolerations).toEqual([GOLD]);
  });

  it('is no label that the controllers write themselves, and no selector', () => {
    const wanted = {
      trait: 'a',
      wanted: { metadata: { labels: { 'module.koupleless.io/name': 'x' } }, spec: { selector: {} } },
    };
    expect(apply(workload(), NO_RECORD, wanted).conflicts.map(({ message }) => message)).toEqual([
      'metadata.labels.module.koupleless.io/name: belongs to the controllers',
      'spec.selector: is not a field that a trait may set',
    ]);
  });

  it('is neither of two that differ, and whoever had it keeps it', () => {
    const [ten, twenty] = [10, 20].map((terminationGracePeriodSeconds) => ({ terminationGracePeriodSeconds }));
    const both = [fragment('a', ten as JsonObject), fragment('b', twenty as JsonObject)];
    const live = withDefaults(workload());
    const { object, conflicts } = apply(live, NO_RECORD, ...both);
    expect([bytes(object), conflicts.map(({ trait, other }) => [trait, other])]).toEqual([
      bytes(live),
      [
        ['b', 'a'],
        ['a', 'b'],
      ],
    ]);
    const first = apply(live, NO_RECORD, both[0] as Fragment);
    const second = apply(first.stored, first.after, ...both);
    expect([second.isChanged, second.after]).toEqual([false, first.after]);
    expect(bytes(apply(second.stored, second.after, both[1] as Fragment).object)).toContain(
      '"terminationGracePeriodSeconds":20',
    );
  });

  it('stays where somebody has changed it', () => {
    const live = withDefaults(workload());
    const { stored, after } = apply(
      live,
      NO_RECORD,
      fragment('a', { terminationGracePeriodSeconds: 60, tolerations: [GOLD] }),
    );
    const edited = JSON.parse(bytes(stored).replace('Seconds":60', 'Seconds":90')) as Json;
    const next = apply(edited, after, fragment('a', { terminationGracePeriodSeconds: 60, tolerations: [GOLD] }));
    expect([next.isChanged, next.conflicts.map(({ message }) => message)]).toEqual([
      false,
      ['spec.template.spec.terminationGracePeriodSeconds: the workload has 90'],
    ]);
    const gone = apply(next.stored, next.after);
    expect(gone.kept).toEqual([
      'spec.template.spec.terminationGracePeriodSeconds: somebody has changed it, so it stays',
    ]);
    expect([podSpecOf(gone.object).terminationGracePeriodSeconds, podSpecOf(gone.object).tolerations]).toEqual([
      90,
      undefined,
    ]);
  });

  it('comes back where somebody has removed it', () => {
    const wanted = fragment('a', { tolerations: [GOLD] });
    const { after } = apply(workload(), NO_RECORD, wanted);
    expect(podSpecOf(apply(workload(), after, wanted).object).tolerations).toEqual([GOLD]);
  });

  it('is of all that want it, and goes with the last of them', () => {
    const live = withDefaults(workload());
    const [a, b] = ['a', 'b'].map((name) => fragment(name, { tolerations: [GOLD] })) as [Fragment, Fragment];
    const both = apply(live, NO_RECORD, a, b);
    const one = apply(both.stored, both.after, b);
    expect([one.isChanged, bytes(apply(one.stored, one.after).object)]).toEqual([false, bytes(live)]);
  });
});

describe('a record that somebody has written', () => {
  it.each([
    '',
    '{',
    '[]',
    '{"entries":[{}],"parents":[]}',
    '{"entries":[],"parents":[[]]}',
    '{"entries":[],"parents":[["a",1]]}',
  ])('is none: %s', (text) => expect(recordIn(text)).toBeUndefined());

  it('takes out nothing but what a trait may put in', () => {
    const forged = { traits: ['a'], path: ['spec', 'selector'], before: { matchLabels: {} }, source: '', stored: '' };
    const live = workload();
    const entry = { ...forged, stored: 'x' };
    const { object } = apply(live, {
      entries: [entry],
      parents: [
        ['spec', 'selector'],
        ['metadata', 'name'],
      ],
    });
    expect(bytes(object)).toBe(bytes(withDefaults(live)).replace(',"imagePullPolicy":"IfNotPresent"', ''));
  });
});

const name = fc.constantFrom('a', 'b', 'c', '__proto__');
const value = fc.constantFrom('1', '2');
const toleration = fc.record({
  key: name,
  operator: fc.constant('Exists'),
  effect: fc.constantFrom('NoSchedule', 'NoExecute'),
});
const variable = fc.record({ name, value });
const expression = fc.record({ key: name, operator: fc.constantFrom('Exists', 'DoesNotExist') });
const term = fc.record(
  {
    matchExpressions: fc.array(expression, { minLength: 1, maxLength: 2 }),
    matchFields: fc.array(expression, { minLength: 1, maxLength: 1 }),
  },
  { requiredKeys: [] },
);
const labels = fc.dictionary(fc.constantFrom('x', 'y', 'z'), value, { noNullPrototype: true });
const container = fc.record(
  {
    name: fc.constantFrom('shop', 'side'),
    image: fc.constantFrom('shop.jar', 'side.jar'),
    env: fc.array(variable, { maxLength: 3 }),
    args: fc.array(value, { maxLength: 2 }),
  },
  { requiredKeys: ['name'] },
);
const partOf = (terms: fc.Arbitrary<unknown[]>, containers: fc.Arbitrary<unknown[]>) =>
  fc.record(
    {
      tolerations: fc.uniqueArray(toleration, { maxLength: 3, selector: (one) => JSON.stringify(one) }),
      nodeSelector: labels,
      terminationGracePeriodSeconds: fc.constantFrom(10, 30),
      priorityClassName: value,
      containers,
      affinity: terms.map((all) => ({
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: all } },
      })),
    },
    { requiredKeys: [] },
  );
const uniqueContainers = (minLength: number) =>
  fc.uniqueArray(container, { minLength, maxLength: 2, selector: (one) => one.name });
const users = fc
  .record({
    part: partOf(fc.array(term, { minLength: 1, maxLength: 3 }), uniqueContainers(1)),
    annotations: fc.option(labels, { nil: undefined }),
  })
  .map(({ part, annotations }) => {
    const { containers = [{ name: 'shop', image: 'shop.jar' }], ...rest } = part as JsonObject;
    const template = annotations === undefined ? {} : { annotations };
    return withDefaults(workload({ containers, ...rest }, { template: template as never }));
  });
const required = fc.array(expression, { minLength: 1, maxLength: 2 }).map((matchExpressions) => [{ matchExpressions }]);
const wishes = fc
  .array(partOf(required, uniqueContainers(0)), { maxLength: 4 })
  .map((all) =>
    all.map((part, index) =>
      fragment(`t${index}`, part as JsonObject, { metadata: { annotations: { [`k${index}`]: 'v' } } }),
    ),
  );

/** Whether a Node with these labels fits. */
function fits(object: Json, node: ReadonlySet<string>): boolean {
  const { affinity, nodeSelector = {} } = podSpecOf(object) as never as {
    affinity?: { nodeAffinity?: { requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms: Terms } } };
    nodeSelector?: Record<string, string>;
  };
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const fitsOne = ({ matchExpressions = [], matchFields = [] }: Terms[number]): boolean => {
    const all = [...matchExpressions, ...matchFields];
    return all.length > 0 && all.every(({ key, operator }) => node.has(key) === (operator === 'Exists'));
  };
  return Object.keys(nodeSelector).every((key) => node.has(key)) && (terms === undefined || terms.some(fitsOne));
}
type Terms = {
  matchExpressions?: { key: string; operator: string }[];
  matchFields?: { key: string; operator: string }[];
}[];

/** The same in another order of keys, and of items whose order says nothing. */
function shuffled(value: Json, seed: number): Json {
  if (Array.isArray(value)) {
    const items = (value as Json[]).map((item) => shuffled(item, seed));
    const isOrdered = items.every((item) => typeof item === 'string');
    return isOrdered || seed % 2 === 0 ? items : items.reverse();
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as JsonObject).map(([key, one]) => [key, shuffled(one, seed)] as const);
  return Object.fromEntries(seed % 3 === 0 ? entries : entries.reverse());
}

describe('whatever a user and traits want', () => {
  it('traits that go leave the workload as it was, and nothing fits that did not', () => {
    fc.assert(
      fc.property(users, wishes, (live, fragments) => {
        const on = apply(live, NO_RECORD, ...fragments);
        const again = apply(on.stored, on.after, ...fragments);
        expect([again.isChanged, again.after]).toEqual([false, on.after]);
        for (const keys of [[], ['a'], ['b'], ['a', 'b'], ['a', 'b', 'c']]) {
          const node = new Set(keys);
          if (fits(on.stored, node)) expect(fits(live, node)).toBe(true);
        }
        const off = apply(on.stored, on.after);
        expect([bytes(off.object), off.kept, off.after]).toEqual([bytes(live), [], NO_RECORD]);
      }),
      { numRuns: runsOf(500) },
    );
  });

  it('the order in which traits are written makes no difference', () => {
    fc.assert(
      fc.property(users, wishes, fc.nat(5), (live, fragments, seed) => {
        const other = fragments.map(({ trait, wanted }) => ({ trait, wanted: shuffled(wanted, seed) as JsonObject }));
        expect(bytes(apply(live, NO_RECORD, ...other).object)).toBe(bytes(apply(live, NO_RECORD, ...fragments).object));
      }),
      { numRuns: runsOf(300) },
    );
  });

  it('traits that come and go one by one end where those that are there would have begun', () => {
    fc.assert(
      fc.property(users, wishes, fc.array(fc.nat(15), { maxLength: 6 }), (live, fragments, turns) => {
        let [object, record]: [Json, TraitRecord] = [live, NO_RECORD];
        for (const turn of turns) {
          const present = fragments.filter((_one, index) => (turn >> index) % 2 === 1);
          const next = apply(object, record, ...present);
          [object, record] = [next.stored, next.after];
        }
        const off = apply(object, record);
        expect([bytes(off.object), off.kept]).toEqual([bytes(live), []]);
      }),
      { numRuns: runsOf(300) },
    );
  });

  it('what a user edits meanwhile is there when the traits have gone', () => {
    fc.assert(
      fc.property(users, wishes, fc.subarray([...EDITS.keys()]), (live, fragments, edits) => {
        const edit = (object: Json): Json => edits.reduce((last, index) => (EDITS[index] as Edit)(last), object);
        const on = apply(live, NO_RECORD, ...fragments);
        const edited = apply(edit(on.stored), on.after, ...fragments);
        const off = apply(edited.stored, edited.after);
        expect([canonicalJson(off.object), off.after]).toEqual([canonicalJson(edit(live)), NO_RECORD]);
      }),
      { numRuns: runsOf(300) },
    );
  });
});

type Edit = (object: Json) => Json;

/** Changes of a user's own part: whatever traits have put in, each means the same. */
const EDITS: readonly Edit[] = [
  editOf((spec) => {
    spec.tolerations = [...((spec.tolerations as Json[] | undefined) ?? []), { key: 'own', operator: 'Exists' }];
  }),
  editOf((spec) => {
    const [first] = spec.containers as unknown as [Record<string, Json>];
    first.image = 'edited.jar';
  }),
  editOf((spec) => {
    const [first] = spec.containers as unknown as [Record<string, Json>];
    first.env = [{ name: 'OWN', value: '1' }, ...((first.env as Json[] | undefined) ?? [])];
  }),
  editOf((spec) => {
    spec.containers = [...(spec.containers as Json[]), { name: 'own', image: 'own.jar', imagePullPolicy: 'Always' }];
  }),
  editOf((spec) => {
    spec.nodeSelector = { ...(spec.nodeSelector as JsonObject | undefined), own: 'yes' };
  }),
  editOf((spec) => {
    spec.hostNetwork = true;
  }),
];

function editOf(change: (podSpec: Record<string, Json>) => void): Edit {
  return (object) => {
    const copy = structuredClone(object);
    change(podSpecOf(copy) as Record<string, Json>);
    return copy;
  };
}
