import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeBase, makeList, makeResult } from '../../support/builders.ts';
import { CoreRig } from '../../support/core-rig.ts';

const NODE = 'vnode.b1';
const TUNNEL = 'mqtt_tunnel_provider';
let rig: CoreRig;
let lines: { msg: string; suppressed?: number }[];

beforeEach(async () => {
  lines = [];
  rig = new CoreRig({ logger: pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) }) });
  await rig.start();
  await rig.foundBase('b1');
  await rig.pass(20_000);
  rig.api.take();
});

afterEach(() => rig.stop());

/** Says `speak` every 100 ms for so long. */
async function flood(seconds: number, speak: (index: number) => void): Promise<void> {
  for (let index = 0; index < 10 * seconds; index++) {
    speak(index);
    await rig.pass(100);
  }
}

function linesOf(...words: readonly string[]): typeof lines {
  return lines.filter(({ msg }) => words.includes(msg));
}

function recordCount(): number {
  return [...(rig.store.get(NODE)?.ledger.records() ?? [])].length;
}

async function skipped(reason: string): Promise<number | undefined> {
  const { values } = await rig.metrics.skippedLists.get();
  return values.find(({ labels }) => labels.reason === reason)?.value;
}

describe('what a base says of itself', () => {
  it('is written at once, and then once in 10 s however often it changes', async () => {
    rig.claim('b1', TUNNEL, { ...rig.bases.get('b1')?.info, name: 'renamed' });
    await rig.pass(100);
    expect(rig.api.node(NODE)?.metadata.labels?.['base.koupleless.io/name']).toBe('renamed');
    rig.api.take();
    const base = rig.bases.get('b1');
    await flood(60, (index) => {
      if (base) base.info = { ...base.info, name: `name-${index}`, version: `${index}`, hostName: `host-${index}` };
      rig.heartbeat('b1');
    });
    const requests = rig.api.take();
    expect(requests.filter((request) => request === `patch node ${NODE}`).length).toBeLessThanOrEqual(6);
    expect(requests.filter((request) => request === `patch node/status ${NODE}`).length).toBeLessThanOrEqual(7);
    await rig.pass(20_000);
    expect(rig.api.node(NODE)?.metadata.labels?.['base.koupleless.io/name']).toBe('name-599');
  });

  it('moves its address at once, and not without end', async () => {
    const addressOf = () => rig.api.node(NODE)?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
    rig.claim('b1', TUNNEL, { name: 'renamed' });
    const base = rig.bases.get('b1');
    if (base) base.info = makeBase('b1', { ip: '198.51.100.77' });
    rig.heartbeat('b1');
    await rig.pass(100);
    expect(addressOf()).toBe('198.51.100.77');
    rig.api.take();
    await flood(60, (index) => rig.claim('b1', TUNNEL, { ip: `198.51.100.${10 + (index % 90)}` }));
    expect(rig.api.take(`patch node/status ${NODE}`).length).toBeLessThanOrEqual(10);
  });

  it('keeps a base alive that changes it all the time', async () => {
    const base = rig.bases.get('b1');
    if (base) base.isSilent = true;
    await flood(90, (index) => rig.claim('b1', TUNNEL, { name: `name-${index}` }));
    expect(rig.condition(NODE, 'Ready')).toBe('True KubeletReady');
  });

  it('does not let a base over HTTP move for ever between places where nobody listens', async () => {
    rig.claim('h1', 'http_tunnel_provider', { port: 1000 });
    await rig.pass(2_000);
    rig.api.take();
    await flood(60, (index) => {
      rig.vnodes.onConnectionRefused('http_tunnel_provider', rig.store.get('vnode.h1')?.place.base ?? makeBase('h1'));
      rig.claim('h1', 'http_tunnel_provider', { port: 2_000 + index });
    });
    expect(rig.api.take('patch node vnode.h1').length).toBeLessThanOrEqual(10);
  });
});

describe('lists that nobody asked for', () => {
  it('are read once a second, the rest is counted, and the last one is asked for', async () => {
    let read = 0;
    await flood(10, () => {
      if (rig.vnodes.admitList(TUNNEL, 'b1')) read++;
    });
    expect(read).toBeLessThanOrEqual(12);
    expect(await skipped('rate')).toBe(100 - read);
    rig.tunnel.take();
    await rig.pass(3_000);
    expect(rig.tunnel.take('list b1')).toEqual(['list b1']);
  });

  it('of bases that are not known are left to others to refuse', () => {
    expect(rig.vnodes.admitList(TUNNEL, 'nobody')).toBe(true);
    expect(rig.vnodes.admitList('http_tunnel_provider', 'b1')).toBe(true);
  });

  it('with ever new names fill nothing, uninstall nothing and end no Pod', async () => {
    rig.addPod();
    await rig.pass(5_000);
    expect(rig.podState('p1')).toBe('Running True');
    rig.commands();
    const base = rig.bases.get('b1');
    if (base) base.answersLists = false;
    lines.length = 0;
    for (let round = 0; round < 30; round++) {
      const names = Array.from({ length: 1_999 }, (_, index) => `r${round}-${index}:1`);
      rig.vnodes.onModuleList(rig.envelope('b1'), makeList(...names, 'biz1:1.0.0'));
      await rig.pass(1_000);
      expect(recordCount()).toBeLessThanOrEqual(4_000);
    }
    expect(recordCount()).toBeLessThanOrEqual(2_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.commands()).toEqual([]);
  });

  it('before the first plan of a base that restarts behind each one are not noted without end', async () => {
    await rig.foundBase('b2', { answersLists: false });
    const contact = rig.store.get('vnode.b2')?.contact;
    for (let round = 0; round < 30; round++) {
      const names = Array.from({ length: 2_000 }, (_, index) => `r${round}-${index}:1`);
      rig.vnodes.onModuleList(rig.envelope('b2'), makeList(...names));
      rig.restart('b2');
      await rig.pass(1_000);
    }
    expect(contact?.kept).toBeUndefined();
    expect(contact?.listed?.size).toBeLessThanOrEqual(4_000);
    rig.vnodes.onModuleList(rig.envelope('b2'), makeList('last:1'));
    await rig.pass(5_000);
    expect(rig.recordOf('b2')).toBe('all');
    expect(contact?.listed).toBeUndefined();
  });

  it('that find no room are refused, with a line and a count, and what they lack goes on', async () => {
    rig.addPod();
    await rig.pass(5_000);
    rig.commands();
    for (let round = 0; round < 3; round++) {
      const names = Array.from({ length: 1_999 }, (_, index) => `r${round}-${index}:1`);
      const list = makeList(...names, round < 2 ? 'biz1:1.0.0' : 'other:1');
      rig.vnodes.onModuleList({ ...rig.envelope('b1'), publishedAt: 2_000_000 + round }, list);
    }
    expect(await skipped('room')).toBe(1);
    expect(linesOf('list of a base refused')).toHaveLength(1);
    expect(lines.find(({ msg }) => msg === 'list of a base refused')).toMatchObject({ code: 'Base.TooManyModules' });
    expect(rig.store.get(NODE)?.ledger.get('biz1:1.0.0')).toMatchObject({
      state: 'ACTIVATED',
      missingSince: undefined,
    });
    await rig.pass(5_000);
    expect(rig.podState('p1')).toBe('Running True');
    expect(rig.commands()).toEqual([]);
  });
});

describe('log lines and events of a base', () => {
  it('are bounded for answers that nobody asked for, and tell how many were left out', async () => {
    lines.length = 0;
    await flood(60, (index) => rig.vnodes.onOperationResult(rig.envelope('b1'), makeResult('install', `x${index}:1`)));
    const told = linesOf('base answered');
    expect(told.length).toBeGreaterThan(30);
    expect(told.length).toBeLessThanOrEqual(37);
    expect(told.reduce((sum, { suppressed = 0 }) => sum + suppressed, told.length)).toBeGreaterThan(500);
  });

  it('are bounded for restarts, and so are the questions that they cause', async () => {
    lines.length = 0;
    rig.tunnel.take();
    const before = rig.events.length;
    await flood(60, () => rig.restart('b1'));
    expect(linesOf('base was restarted').length).toBeLessThanOrEqual(37);
    expect(rig.events.slice(before).filter((event) => event.includes('Rebooted')).length).toBeLessThanOrEqual(37);
    expect(rig.tunnel.take('list b1').length).toBeLessThanOrEqual(60);
  });

  it('are bounded for modules that no Pod asks for and that change with each list', async () => {
    const base = rig.bases.get('b1');
    if (base) base.answersLists = false;
    const before = rig.events.length;
    for (let round = 0; round < 90; round++) {
      rig.vnodes.onModuleList(rig.envelope('b1'), makeList(`r${round}:1`));
      await rig.pass(1_000);
    }
    const told = linesOf('base has modules that no Pod asks for', 'modules from before the first contact are kept');
    expect(told.length).toBeGreaterThan(30);
    expect(told.length).toBeLessThanOrEqual(40);
    expect(rig.events.slice(before).filter((event) => event.includes('UnknownModule')).length).toBe(told.length);
  });

  it('tell of every answer to a command of ours', async () => {
    lines.length = 0;
    for (let index = 0; index < 100; index++) rig.addPod({ name: `p${index}`, modules: [`biz${index}:1`] });
    await rig.pass(5_000);
    expect(linesOf('base answered')).toHaveLength(100);
  });
});
