import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialPlugin } from '../../../src/kube/auth/cluster-access.ts';
import { bearerOf, type DatedCredential, keepCredential } from '../../../src/kube/auth/credential-keeper.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let fetches: number;
/** Milliseconds for which a fetched credential is valid; undefined = for ever. */
let validForMs: number | undefined;

beforeEach(() => {
  clock = new FakeClock();
  fetches = 0;
  validForMs = undefined;
});

const expiringIn = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : clock.wallTime().getTime() + ms;

function keeper(initial?: DatedCredential): CredentialPlugin {
  const fetch = async (): Promise<DatedCredential> => {
    fetches++;
    return { credential: { authorization: `fetched ${fetches}` }, expiresAtMs: expiringIn(validForMs) };
  };
  return keepCredential({ clock, initial, fetch });
}

const initialFor = (ms: number | undefined): DatedCredential => ({
  credential: { authorization: 'initial' },
  expiresAtMs: expiringIn(ms),
});

describe('a credential that is kept', () => {
  it.each([
    [undefined, 'initial'],
    [1, 'initial'],
    [0, 'fetched 1'],
    [-1, 'fetched 1'],
  ])('at the start is good until the moment at which it expires, in %s ms', async (ms, authorization) => {
    expect(await keeper(initialFor(ms))(false)).toEqual({ authorization });
  });

  it('is fetched when there is none', async () => {
    expect(await keeper()(false)).toEqual({ authorization: 'fetched 1' });
  });

  it('is fetched again 90 s before it expires, and when it was rejected', async () => {
    validForMs = 200_000;
    const plugin = keeper();
    await plugin(false);
    clock.advance(109_999);
    expect(await plugin(false)).toEqual({ authorization: 'fetched 1' });
    clock.advance(1);
    expect(await plugin(false)).toEqual({ authorization: 'fetched 2' });
    expect(await plugin(true)).toEqual({ authorization: 'fetched 3' });
    expect(await plugin(false)).toEqual({ authorization: 'fetched 3' });
  });
});

describe('a token', () => {
  it('becomes a header without the white space around it', () => {
    expect(bearerOf(' a.b~\n')).toBe('Bearer a.b~');
  });

  it.each(['', 'a b', 'a\nb', 'ä', 'a\x7f'])('%j is refused', (token) => {
    expect(() => bearerOf(token)).toThrow('characters that are not allowed');
  });
});
