import { beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/logger.ts';
import { Tunnels } from '../../../src/tunnel/tunnels.ts';
import { BaseCandidates } from '../../../src/vnode/base-candidates.ts';
import { makeBase } from '../../support/builders.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeTunnel } from '../../support/fake-tunnel.ts';

const HTTP = 'http_tunnel_provider';
let clock: FakeClock;
let tunnel: FakeTunnel;
let candidates: BaseCandidates;

beforeEach(() => {
  clock = new FakeClock();
  tunnel = new FakeTunnel(HTTP);
  candidates = new BaseCandidates({ tunnels: new Tunnels([tunnel]), clock, logger: silentLogger });
});

const place = { ip: '198.51.100.1', port: 1238 };
const hint = (identity: string): void => candidates.hint(HTTP, makeBase(identity, place));
const prove = (identity: string) =>
  candidates.proven({ tunnel: HTTP, identity, publishedAt: undefined, answeredBy: identity, place });

describe('a base that is known from the heartbeat of somebody else', () => {
  it('is asked who it is, and again 5 s later', () => {
    hint('b1');
    clock.advance(4_999);
    hint('b1');
    expect(tunnel.take()).toEqual(['health b1']);
    clock.advance(1);
    hint('b1');
    expect(tunnel.take()).toEqual(['health b1']);
  });

  it('is proven by its answer, once', () => {
    hint('b1');
    expect(prove('b1')).toMatchObject({ identity: 'b1', ...place });
    expect([prove('b1'), candidates.size]).toEqual([undefined, 0]);
  });

  it('is asked every second for 5 s when nobody listens there', () => {
    hint('b1');
    tunnel.take();
    for (let second = 0; second < 10; second++) {
      candidates.refused(HTTP, makeBase('b1', place));
      clock.advance(1_000);
      candidates.sweep();
    }
    expect(tunnel.take()).toEqual(new Array(4).fill('health b1'));
  });

  it('is forgotten 25 s after its last heartbeat', () => {
    hint('b1');
    clock.advance(24_999);
    candidates.sweep();
    expect(candidates.size).toBe(1);
    clock.advance(1);
    candidates.sweep();
    expect(candidates.size).toBe(0);
  });
});

describe('many such bases', () => {
  it('are 1,000 at most: the one that was heard longest ago leaves', () => {
    for (let index = 0; index < 1_000; index++) hint(`b${index}`);
    hint('b0');
    expect(candidates.size).toBe(1_000);
    hint('new');
    expect(candidates.size).toBe(1_000);
    expect([prove('b0')?.identity, prove('b1'), prove('new')?.identity]).toEqual(['b0', undefined, 'new']);
  });

  it('are asked 100 questions at once, and 50 a second', () => {
    for (let index = 0; index < 200; index++) hint(`b${index}`);
    expect(tunnel.take()).toHaveLength(100);
    clock.advance(1_000);
    for (let index = 200; index < 300; index++) hint(`b${index}`);
    expect(tunnel.take()).toHaveLength(50);
  });
});
