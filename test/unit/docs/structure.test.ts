import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { importCircles, importsUp } from '../../structure/imports.ts';
import { classesOf, stateOf } from '../../structure/state.ts';
import { changedInPlace, outsideAssignments, vnodeGroups } from '../../structure/vnode-groups.ts';
import { statefulFilesOf, TUNNEL_FOLDERS, walks } from '../../structure/walks.ts';
import { PURE } from './architecture.ts';
import { ROOT, readSource, sourceFilesOf } from './sources.ts';

const SOURCES = sourceFilesOf('src', 'tunnels');
const WALKS = walks();
const [POD_EVENT, HEARTBEAT, ...OTHERS] = WALKS;
if (POD_EVENT === undefined || HEARTBEAT === undefined) throw new Error('docs/contribute.md shows no walks');

/** Collections and limits that several files change, each with the reason. */
const SHARED: Readonly<Record<string, string>> = {
  vanishedPods: 'another leader clears it',
  pendingRemovals: 'two reasons to remove a module; another leader clears it',
  unknown: 'another leader clears it',
  contact: 'FirstContacts keeps the record, UnknownModules what is reported of it',
  lists: 'one file asks, one takes the answers, and one asks again for those that were skipped',
  reports: 'one limit for all that is logged about a base',
};

describe('imports', () => {
  it('form no circle, also not of types', () => {
    expect(importCircles(SOURCES)).toEqual([]);
  });

  it('go along the arrows', () => {
    expect(importsUp(SOURCES)).toEqual([]);
  });

  it('form a circle where two files need each other', () => {
    const file = (path: string, target: string) => ({
      ...readSource('src/leadership.ts'),
      path,
      imports: [{ target, isOfRepository: true, isTypeOnly: true, isDynamic: false }],
    });
    expect(importCircles([file('a.ts', 'b.ts'), file('b.ts', 'a.ts'), file('c.ts', 'a.ts')])).toEqual(['a.ts', 'b.ts']);
  });
});

describe('the walks of docs/contribute.md', () => {
  it.each(TUNNEL_FOLDERS)('go through few files with state, over %s', (tunnel) => {
    expect(statefulFilesOf(POD_EVENT, tunnel).length).toBeLessThanOrEqual(9);
    expect(statefulFilesOf(HEARTBEAT, tunnel).length).toBeLessThanOrEqual(7);
  });

  it('name files that exist, and those with a star have state', () => {
    const files = WALKS.flatMap((walk) => walk.files);
    expect(OTHERS.length).toBe(2);
    expect(files.filter(({ path }) => !existsSync(new URL(path, ROOT)))).toEqual([]);
    const starred = files.filter(({ isStarred }) => isStarred);
    expect(starred.filter(({ path }) => stateOf(readSource(path)).length === 0)).toEqual([]);
  });

  it('have a star at each file with state, besides pure files, which only keep results', () => {
    const files = [...POD_EVENT.files, ...HEARTBEAT.files];
    const starred = new Set(files.filter(({ isStarred }) => isStarred).map(({ path }) => path));
    const others = files.filter(({ path }) => !starred.has(path) && !PURE.includes(path));
    expect(others.filter(({ path }) => stateOf(readSource(path)).length > 0)).toEqual([]);
  });
});

describe('the state of a VNode', () => {
  const groups = vnodeGroups();

  it('is in groups', () => {
    expect(groups.map(({ field }) => field)).toEqual(['place', 'life', 'proof', 'process', 'questions', '#work', '']);
    expect(groups.filter(({ state }) => state.length === 0)).toEqual([]);
    expect(groups.at(-1)?.state).toEqual(['checked']);
  });

  it('has one file that calls each method which changes it', () => {
    const calls = groups.flatMap(({ type, callers }) =>
      [...callers].map(([method, files]) => `${type}.${method}: ${files.length}`),
    );
    expect(calls.length).toBeGreaterThan(30);
    expect(calls.filter((call) => !call.endsWith(': 1'))).toEqual([]);
  });

  it('has collections that one file changes, or several for a reason', () => {
    const shared = [...changedInPlace()].filter(([, files]) => files.length !== 1);
    expect(shared.map(([name]) => name)).toEqual(Object.keys(SHARED));
  });

  it('is assigned by no other file', () => {
    expect(outsideAssignments()).toEqual([]);
  });
});

it('a class has the fields that change, and the methods without its constructor and getters', () => {
  const bare = [
    'export class Thing extends Map<string, number> {',
    '  readonly #options: Options;',
    '  readonly #byName = new Map<string, Thing>();',
    '  #count = 0;',
    '',
    '  constructor(options: Options) {',
    '    this.#options = options;',
    '  }',
    '',
    '  get count(): number {',
    '    return this.#count;',
    '  }',
    '',
    '  add(by: number): void {',
    '    this.#count += by;',
    '  }',
    '}',
    '',
  ].join('\n');
  const [thing] = classesOf({ bare });
  expect(thing?.fields.filter(({ isMutable }) => isMutable).map(({ name }) => name)).toEqual([
    'its entries',
    '#byName',
    '#count',
  ]);
  expect(thing?.methods.map(({ name }) => name)).toEqual(['add']);
});
