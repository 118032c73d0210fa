import { expect, it } from 'vitest';
import { type ReleaseInput, releaseInForce } from '../../../../src/platform/catalog/module/release-in-force.ts';
import type { ModuleReleaseSpec } from '../../../../src/platform/catalog/release/module-release.ts';

const JAR = 'https://jars.example.com/cart-1.0.0-ark-biz.jar';
const OTHER = 'https://jars.example.com/cart-9.9.9-ark-biz.jar';
const SHA = 'a'.repeat(64);
const PUBLISHED: ModuleReleaseSpec = {
  default: 'r1',
  releases: [{ id: 'r1', image: JAR, version: '1.0.0', sha256: SHA, baseVersions: ['2'] }],
};
const FULL = { id: 'r1', image: JAR, version: '1.0.0', sha256: SHA, baseVersions: ['2'] };
const PLAIN = { version: undefined, sha256: undefined, baseVersions: undefined };
const AUTO = 'platform.koupleless.io/auto-release';

function inForce(input: Partial<ReleaseInput>) {
  return releaseInForce({
    spec: {},
    annotations: {},
    before: undefined,
    history: undefined,
    published: PUBLISHED,
    ...input,
  });
}

it('is none where the Module names none', () => {
  expect(inForce({})).toEqual({ state: 'None' });
  expect(inForce({ annotations: { [AUTO]: 'false' } })).toEqual({ state: 'None' });
});

it('is the default one where the Module asks for any', () => {
  expect(inForce({ annotations: { [AUTO]: 'true' } })).toEqual({ state: 'Found', release: FULL });
  expect(inForce({ annotations: { [AUTO]: 'true' }, published: undefined })).toEqual({ state: 'None' });
});

it('takes what the Module leaves out from the ModuleRelease', () => {
  expect(inForce({ spec: { release: { id: 'r1' } } })).toEqual({ state: 'Found', release: FULL });
});

it('takes nothing of another jar', () => {
  const release = { id: 'r1', image: OTHER };
  expect(inForce({ spec: { release } })).toEqual({ state: 'Found', release: { ...PLAIN, ...release } });
  expect(inForce({ spec: { release }, published: undefined })).toMatchObject({ state: 'Found' });
});

it('keeps the versions of bases of a jar that was in force and is no longer published', () => {
  const former = { revision: 1, id: 'r1', image: OTHER, baseVersions: ['1.0'], time: '2026-01-01T00:00:00Z' };
  const known = (image: string) => inForce({ spec: { release: { id: 'r1', image } }, history: [former] });
  expect(known(OTHER)).toMatchObject({ release: { image: OTHER, baseVersions: ['1.0'] } });
  expect(known(JAR)).toMatchObject({ release: { image: JAR, baseVersions: ['2'] } });
  expect(inForce({ spec: { release: { id: 'r2', image: OTHER } }, history: [former] })).toEqual({
    state: 'Found',
    release: { ...PLAIN, id: 'r2', image: OTHER },
  });
});

it('is missing where nobody has published it, and what was in force runs on', () => {
  const before = { id: 'r0', image: OTHER, version: '9.9.9', time: '2026-01-01T00:00:00Z' };
  const spec = { release: { id: 'r2' } };
  expect(inForce({ spec, before })).toEqual({ state: 'Missing', id: 'r2', release: before });
  expect(inForce({ spec })).toEqual({ state: 'Missing', id: 'r2', release: undefined });
});
