import { describe, expect, it } from 'vitest';
import { VNode, VNodeStore } from '../../../src/vnode/vnode.ts';
import { LEDGER_OPTIONS, makeBase } from '../../support/builders.ts';

const NOW = 100_000;

function vnode(lastHeardAt = 10_000): VNode {
  const made = new VNode({ base: makeBase('b1'), tunnel: 'mqtt_tunnel_provider', now: 0, ledger: LEDGER_OPTIONS });
  made.life.hear(lastHeardAt, undefined);
  return made;
}

describe('a base whose leader changes', () => {
  const unready = { wasReady: false, mayBeSilentSince: 90_000 };

  it('that looked dead is unreachable: the next leader judges by what it hears itself', () => {
    const dead = vnode();
    dead.fallSilent('Dead');
    dead.life.confirmSilence(true);
    dead.changeLeader(NOW, unready);
    expect(dead.life).toMatchObject({ liveness: 'Unreachable', isConfirmedSilent: false, lastHeardAt: 10_000 });
  });

  it('stays reachable where this replica hears it', () => {
    const heard = vnode();
    heard.changeLeader(NOW, unready);
    expect(heard.life).toMatchObject({ liveness: 'Reachable', lastHeardAt: 10_000 });
  });

  it('that was only heard of by others is unreachable, and silent since its leader may have been', () => {
    const hearsay = vnode();
    hearsay.life.noteHearsay();
    hearsay.changeLeader(NOW, unready);
    expect(hearsay.life).toMatchObject({ liveness: 'Unreachable', isHearsay: false, lastHeardAt: 90_000 });
  });

  it('that its leader had Ready is so, and silent since then at the latest', () => {
    const ready = vnode();
    ready.fallSilent('Unreachable');
    ready.changeLeader(NOW, { ...unready, wasReady: true });
    expect(ready.life).toMatchObject({ liveness: 'Reachable', lastHeardAt: 90_000 });
    const recent = vnode(95_000);
    recent.changeLeader(NOW, { ...unready, wasReady: true });
    expect(recent.life.lastHeardAt).toBe(95_000);
  });
});

describe('a base after operations', () => {
  it('is asked 4 s after the last one, and 60 s after the first one at the latest', () => {
    const busy = vnode();
    const due = [0, 3_000, 10_000, 55_000, 57_000].map((now) => {
      busy.operationEnded(now);
      return busy.questions.refresh?.at;
    });
    expect(due).toEqual([4_000, 7_000, 14_000, 59_000, 60_000]);
  });
});

describe('a base over HTTP', () => {
  const at = (ip: string): VNode =>
    new VNode({
      base: makeBase('b1', { ip, port: 1238 }),
      tunnel: 'http_tunnel_provider',
      now: 0,
      ledger: LEDGER_OPTIONS,
    });

  it('that moves is heard at its new address, and nobody at the old one', () => {
    const store = new VNodeStore();
    const moving = at('198.51.100.1');
    expect(store.settle(moving)).toBeUndefined();
    expect(store.settle(moving)).toBeUndefined();
    const old = moving.place.settledAt;
    expect(store.heardAt(old)).toBe(moving);
    moving.place.update(makeBase('b1', { ip: '198.51.100.2', port: 1238 }), 'http_tunnel_provider');
    expect(store.settle(moving)).toBeUndefined();
    expect([store.heardAt(old), store.heardAt(moving.place.settledAt)]).toEqual([undefined, moving]);
    expect(moving.place.settledAt).not.toBe(old);
  });

  it('that takes the address of another one has it, and the other does not take it away by leaving', () => {
    const store = new VNodeStore();
    const [first, second] = [at('198.51.100.1'), at('198.51.100.1')];
    store.settle(first);
    expect(store.settle(second)).toBe(first);
    const address = second.place.settledAt;
    store.remove(first);
    expect(store.heardAt(address)).toBe(second);
    store.remove(second);
    expect(store.heardAt(address)).toBeUndefined();
  });
});
