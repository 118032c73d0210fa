import { describe, expect, it } from 'vitest';
import {
  type ConfigsInput,
  configsInForce,
  configsOfText,
  configsText,
  type KnownConfig,
  waitingText,
} from '../../../../src/platform/catalog/module/configs-in-force.ts';

const READY = { isTemplate: false, problem: '' };
const KNOWN = new Map<string, KnownConfig>([
  ['db', { ...READY, activeVersion: 'd2', versions: new Set(['d1', 'd2']) }],
  ['cache', { ...READY, activeVersion: 'c1', versions: new Set(['c1']) }],
  ['draft', { ...READY, activeVersion: undefined, versions: new Set(['x1']) }],
  ['broken', { ...READY, activeVersion: undefined, versions: new Set(), problem: 'spec.content, line 1: wrong' }],
  ['base', { ...READY, activeVersion: 'b1', versions: new Set(['b1']), isTemplate: true }],
]);

function inForce(input: Partial<ConfigsInput>) {
  return configsInForce({ wanted: [], before: [], isNewRelease: false, find: (name) => KNOWN.get(name), ...input });
}

describe('the configuration of a Module', () => {
  const before = [{ name: 'db', version: 'd1' }];
  const versionOf = (input: Partial<ConfigsInput>) => {
    const found = inForce(input);
    return 'missing' in found ? found.missing : found.configs.map(({ version }) => version).join();
  };

  it('is nothing where none is asked for', () => {
    expect(inForce({ before, isNewRelease: true })).toEqual({ configs: [] });
  });

  it('is the active version at first', () => {
    expect(inForce({ wanted: [{ name: 'db' }, { name: 'cache' }] })).toEqual({
      configs: [
        { name: 'db', version: 'd2' },
        { name: 'cache', version: 'c1' },
      ],
    });
  });

  it('says which active versions wait, and for what', () => {
    const find = (name: string) => KNOWN.get(name);
    const running = [...before, { name: 'cache', version: 'c1' }, { name: 'gone', version: 'g1' }];
    expect(waitingText({ wanted: [{ name: 'db' }, { name: 'cache' }], find }, running)).toBe(
      'db: version d2 waits, since d1 runs until the next release',
    );
    expect(waitingText({ wanted: [{ name: 'db', version: 'd1' }], find }, before)).toBe(
      'db: version d2 waits, since spec.configs names d1',
    );
    expect(waitingText({ wanted: [{ name: 'db' }], find }, [{ name: 'db', version: 'd2' }])).toBe('');
  });

  it('is no template, and says why no version is active', () => {
    expect(versionOf({ wanted: [{ name: 'base' }] })).toBe(
      'ModuleConfig base is a template: name one whose parent it is',
    );
    expect(versionOf({ wanted: [{ name: 'broken' }] })).toBe(
      'no version of ModuleConfig broken is active yet: spec.content, line 1: wrong',
    );
  });

  it('keeps how it reaches the module', () => {
    expect(
      inForce({
        wanted: [
          { name: 'db', as: 'Http' },
          { name: 'cache', as: 'Arguments' },
        ],
      }),
    ).toEqual({
      configs: [
        { name: 'db', version: 'd2', as: 'Http' },
        { name: 'cache', version: 'c1' },
      ],
    });
  });

  it('changes with the next release, or at once', () => {
    expect(versionOf({ wanted: [{ name: 'db' }], before })).toBe('d1');
    expect(versionOf({ wanted: [{ name: 'db', follow: 'Release' }], before })).toBe('d1');
    expect(versionOf({ wanted: [{ name: 'db' }], before, isNewRelease: true })).toBe('d2');
    expect(versionOf({ wanted: [{ name: 'db', follow: 'Immediately' }], before })).toBe('d2');
  });

  it('has what is new to it at once, beside what waits', () => {
    expect(versionOf({ wanted: [{ name: 'cache' }, { name: 'db' }], before })).toBe('c1,d1');
  });

  it('stays with a pin, which must be there', () => {
    const pinned = { name: 'db', version: 'd1' };
    for (const isNewRelease of [false, true])
      expect(versionOf({ wanted: [{ ...pinned, follow: 'Immediately' }], isNewRelease })).toBe('d1');
    expect(versionOf({ wanted: [{ ...pinned, version: 'd0' }], before })).toBe('ModuleConfig db has no version d0');
  });

  it('is held as a whole where one is missing', () => {
    expect(versionOf({ wanted: [{ name: 'db' }, { name: 'other' }] })).toBe('there is no ModuleConfig other');
    expect(versionOf({ wanted: [{ name: 'draft' }] })).toBe('no version of ModuleConfig draft is active yet');
    expect(versionOf({ wanted: [{ name: 'draft', version: 'x1' }] })).toBe('x1');
  });

  it('is shown by a Pod, and read again', () => {
    const configs = [...before, { name: 'cache', version: 'c1' }];
    expect(configsText(configs)).toBe('db@d1,cache@c1');
    expect(configsOfText('db@d1,cache@c1')).toEqual([
      { name: 'db', version: 'd1' },
      { name: 'cache', version: 'c1' },
    ]);
    for (const text of [undefined, '', 'db', '@d1', 'db@', 'db@d1@x']) expect(configsOfText(text)).toEqual([]);
  });
});
