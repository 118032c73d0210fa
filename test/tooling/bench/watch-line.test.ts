import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NodeObject, PodObject } from '../../../src/kube/objects.ts';
import { JsonScan, membersOf } from '../../bench/scale/observer/json-scan.ts';
import { GROUP_LABEL, leaseLineOf, nodeLineOf, podLineOf } from '../../bench/scale/observer/watch-line.ts';
import { isReady, isSchedulable } from '../../support/observe.ts';

/** Texts that look like what is searched, and like the end of it. */
const TEXT = fc.oneof(
  fc.constantFrom(
    'Ready',
    'True',
    'False',
    '',
    'node.kubernetes.io/not-ready',
    'virtual-node',
    '{"type":"Ready","status":"True"}',
    '","uid":"other","labels":{"bench":"other"}',
    'a\\',
    '\\"',
    'é😀\u2028\n\t"}]',
  ),
  fc.string({ unit: 'binary' }),
);
const NAME = fc.oneof(
  fc.constantFrom(
    'type',
    'status',
    'conditions',
    'metadata',
    'uid',
    'name',
    'object',
    GROUP_LABEL,
    `${GROUP_LABEL}mark`,
  ),
  fc.string(),
);
/** Whatever else an object may hold, with the names that are searched at other depths. */
const ANYTHING = fc.oneof(
  TEXT,
  TEXT.map((text) => JSON.stringify({ metadata: { uid: text }, status: { conditions: [{ type: 'Ready' }] } })),
  fc.jsonValue({ maxDepth: 3 }),
  fc.dictionary(NAME, fc.oneof(TEXT, fc.dictionary(NAME, TEXT), fc.array(fc.dictionary(NAME, TEXT)))),
);

/** With further members, in any order: the API server keeps to one order, but nothing here depends on it. */
function shuffled<T extends object>(known: fc.Arbitrary<T>, extra: readonly string[]): fc.Arbitrary<T> {
  const others = fc.dictionary(fc.constantFrom(...extra), ANYTHING, { maxKeys: 4 });
  return fc
    .tuple(known, others)
    .chain(([object, more]) => {
      const entries = Object.entries({ ...more, ...object }).filter(([, value]) => value !== undefined);
      return fc.shuffledSubarray(entries, { minLength: entries.length });
    })
    .map((entries) => Object.fromEntries(entries) as T);
}

/** The last ones begin as names that are searched do. */
const EXTRA = ['annotations', 'managedFields', 'message', 'z', 'uids', 'keys', 'statusText', 'nodeNameHint'];

function optional<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined });
}

const CONDITIONS = fc.array(
  shuffled(
    fc.record({
      type: fc.oneof({ weight: 3, arbitrary: fc.constant('Ready') }, TEXT),
      status: fc.oneof(fc.constantFrom('True', 'False', 'Unknown'), TEXT),
    }),
    EXTRA,
  ),
);

function lines(object: fc.Arbitrary<object>): fc.Arbitrary<{ type: string; object: object; line: Buffer }> {
  return shuffled(fc.record({ type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'), object }), EXTRA)
    .chain((event) => fc.tuple(fc.constant(event), fc.constantFrom(undefined, 1, '\t')))
    .map(([event, indent]) => ({ ...event, line: Buffer.from(JSON.stringify(event, null, indent)) }));
}

const METADATA = shuffled(
  fc.record({
    name: TEXT,
    uid: TEXT,
    labels: optional(fc.dictionary(fc.oneof(fc.constant(GROUP_LABEL), NAME), TEXT)),
  }),
  EXTRA,
);

const NODES = lines(
  shuffled(
    fc.record({
      metadata: METADATA,
      spec: shuffled(fc.record({ taints: optional(fc.array(shuffled(fc.record({ key: TEXT }), EXTRA))) }), EXTRA),
      status: shuffled(fc.record({ conditions: optional(CONDITIONS) }), EXTRA),
    }),
    EXTRA,
  ),
);

const PODS = lines(
  shuffled(
    fc.record({
      metadata: METADATA,
      spec: shuffled(fc.record({ nodeName: optional(TEXT) }), EXTRA),
      status: shuffled(
        fc.record({
          conditions: optional(CONDITIONS),
          containerStatuses: optional(fc.array(shuffled(fc.record({ restartCount: fc.nat() }), EXTRA))),
        }),
        EXTRA,
      ),
    }),
    EXTRA,
  ),
);

describe('what is scanned of a line is what JSON.parse finds in it', () => {
  it('of a Node', () => {
    fc.assert(
      fc.property(NODES, ({ type, line }) => {
        const node = JSON.parse(line.toString()).object as NodeObject;
        expect(nodeLineOf(line)).toEqual({
          name: node.metadata.name,
          isGone: type === 'DELETED',
          isUsable: isSchedulable(node),
        });
      }),
      { numRuns: 200 },
    );
  });

  it('of a Pod', () => {
    fc.assert(
      fc.property(PODS, ({ type, line }) => {
        const pod = JSON.parse(line.toString()).object as PodObject;
        expect(podLineOf(line)).toEqual({
          uid: pod.metadata.uid,
          isGone: type === 'DELETED',
          group: pod.metadata.labels?.[GROUP_LABEL],
          isBound: Boolean(pod.spec?.nodeName),
          isReady: isReady(pod),
          restarts: Math.max(0, ...(pod.status?.containerStatuses ?? []).map(({ restartCount }) => restartCount)),
        });
      }),
      { numRuns: 200 },
    );
  });

  it('of any value, whatever its kind', () => {
    const kinds = fc.constantFrom('text', 'number', 'skip', 'object', 'array');
    fc.assert(
      fc.property(fc.jsonValue(), kinds, fc.constantFrom(undefined, 2), (value, kind, indent) => {
        const scan = new JsonScan(Buffer.from(JSON.stringify([value, 'end'], null, indent)));
        const parsed = JSON.parse(JSON.stringify(value));
        const taken: unknown[] = [];
        const takes = {
          text: () => taken.push(scan.text()),
          number: () => taken.push(scan.number()),
          skip: () => scan.skip(),
          object: () => scan.object(membersOf({}), undefined),
          array: () => scan.array(() => scan.skip()),
        };
        let items = 0;
        // Each takes the whole value: the item behind it is read as it is.
        scan.array(() => {
          if (items++ === 0) takes[kind as keyof typeof takes]();
          else taken.push(scan.text());
        });
        expect(taken.at(-1)).toBe('end');
        if (kind === 'text') expect(taken[0]).toBe(typeof parsed === 'string' ? parsed : undefined);
        if (kind === 'number') expect(taken[0]).toBe(typeof parsed === 'number' ? parsed : undefined);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a line', () => {
  const lineOf = (type: string, object: object): Buffer => Buffer.from(JSON.stringify({ type, object }));

  it('of a Lease has its age', () => {
    const object = { metadata: { name: 'vnode.a' }, spec: { renewTime: '2026-01-01T00:00:00.123456Z' } };
    expect(leaseLineOf(lineOf('MODIFIED', object))).toEqual({
      name: 'vnode.a',
      isGone: false,
      renewedAt: Date.parse('2026-01-01T00:00:00.123Z'),
    });
    expect(leaseLineOf(lineOf('DELETED', { metadata: { name: 'vnode.a' } }))).toEqual({
      name: 'vnode.a',
      isGone: true,
      renewedAt: undefined,
    });
  });

  it('with null in place of a list or an object has nothing in it', () => {
    const object = { metadata: { uid: 'a', labels: null }, spec: null, status: { conditions: null } };
    expect(podLineOf(lineOf('ADDED', object))).toMatchObject({ uid: 'a', isBound: false, isReady: false });
  });

  it('of a bookmark is of no object, and a failure is none that goes unseen', () => {
    expect(nodeLineOf(lineOf('BOOKMARK', { metadata: { resourceVersion: '5' } }))).toBeUndefined();
    expect(() => podLineOf(lineOf('ERROR', { kind: 'Status', code: 410 }))).toThrow('410');
  });

  it.each(['{"type":"ADDED","object":{"metadata":{"uid":"a', '{"type":"ADDED","object":', '{"type":"ADDED",', '{'])(
    'that was cut off throws: %s',
    (text) => {
      expect(() => podLineOf(Buffer.from(text))).toThrow();
    },
  );
});
