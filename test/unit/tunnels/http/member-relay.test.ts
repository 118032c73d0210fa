import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMetrics } from '../../../../src/metrics.ts';
import type { MemberPeer } from '../../../../tunnels/http/member-client.ts';
import { MemberVerifier } from '../../../../tunnels/http/member-proof.ts';
import { MemberRelay } from '../../../../tunnels/http/member-relay.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { recordingLogger } from '../mqtt/mqtt-world.ts';
import type { HttpDelivery } from './fake-http-base.ts';
import { FakeMember } from './fake-member.ts';
import { TUNNEL } from './http-world.ts';

const ENV = 'dev';
const KEY = 'members-correct-horse';
const SELF = { id: 'controller-0', boot: 'self-0' };
const FAILED = 'messages of bases cannot be passed on to a member';
const RESTORED = 'messages of bases are passed on to the member again';

describe('MemberRelay', () => {
  let clock: FakeClock;
  let metrics: ReturnType<typeof createMetrics>;
  let log: ReturnType<typeof recordingLogger>;
  let members: FakeMember[];
  let peers: MemberPeer[];
  let isFenced: boolean;
  let relay: MemberRelay;

  beforeEach(async () => {
    clock = new FakeClock();
    metrics = createMetrics();
    log = recordingLogger();
    members = [];
    peers = [];
    isFenced = false;
    relay = new MemberRelay({
      tunnel: TUNNEL,
      members: { env: ENV, keys: [KEY], self: SELF, peers: () => peers, isFenced: () => isFenced },
      clock,
      logger: log.logger,
      metrics,
    });
  });

  afterEach(async () => {
    await relay.stop();
    await Promise.all(members.map((member) => member.close()));
    expect(clock.pending).toBe(0);
    expect(JSON.stringify(log.lines)).not.toContain(KEY);
  });

  async function addMember(host?: string): Promise<FakeMember> {
    const member = await FakeMember.start(host);
    members.push(member);
    peers.push(peerAt(member.address));
    return member;
  }

  const peerAt = (address: string): MemberPeer => ({ id: `controller-${peers.length + 1}`, boot: 'boot-1', address });
  /** What a verifier of that member says of a request that it was sent. */
  function verdictOf({ request }: HttpDelivery, peer: MemberPeer | undefined) {
    const { method = '', url = '', headers } = request;
    const verifier = new MemberVerifier({
      env: ENV,
      keys: [KEY],
      self: { id: peer?.id ?? '', boot: peer?.boot ?? '' },
    });
    return verifier.verify({ method, path: url, authorization: headers.authorization });
  }

  /** A base says `body`. */
  const say = (identity: string, body = identity): void =>
    relay.pass({ type: 'heart', sender: '192.0.2.9', body }, { key: identity, isSaidOnce: false });
  const sayOnce = (identity: string, body = identity): void =>
    relay.pass({ type: 'queryBaseline', sender: '192.0.2.9', body }, { key: `once ${identity}`, isSaidOnce: true });

  async function counts(): Promise<Record<string, number>> {
    const series = [metrics.memberMessages, metrics.memberRequests].map(async (metric) => (await metric.get()).values);
    const values = (await Promise.all(series)).flat();
    return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels).join(), value]));
  }

  const logged = () => log.lines.map(({ level, msg, member }) => [level, msg, member]);

  it('posts what bases said to every other member, once a second', async () => {
    const [first, second] = [await addMember(), await addMember('::1')];
    say('base-1');
    clock.advance(999);
    await settle();
    say('base-2');
    expect([first.requestCount, second.requestCount]).toEqual([0, 0]);
    clock.advance(1);
    const [delivery, other] = await Promise.all([first.received(), second.received()]);
    const { request, body, command } = delivery;
    expect([request.method, command, request.headers['content-type']]).toEqual([
      'POST',
      'members/messages',
      'application/json',
    ]);
    expect(JSON.parse(body)).toEqual({
      messages: [
        { type: 'heart', sender: '192.0.2.9', body: 'base-1' },
        { type: 'heart', sender: '192.0.2.9', body: 'base-2' },
      ],
    });
    expect(other.body).toBe(body);
    const verdict = { bodyDigest: createHash('sha256').update(body).digest('hex') };
    expect([verdictOf(delivery, peers[0]), verdictOf(other, peers[1])]).toEqual([verdict, verdict]);
    expect(verdictOf(delivery, peers[1])).toMatchObject({ fault: 'receiver is not controller-2' });
    await eventually(async () => expect(await counts()).toEqual({ sent: 4, received: 0, dropped: 0, ok: 2, error: 0 }));
  });

  it('has a timer only while something waits, and a connection for a few seconds longer', async () => {
    const member = await addMember();
    expect(clock.pending).toBe(0);
    for (const identity of ['base-1', 'base-2']) say(identity);
    expect(clock.pending).toBe(1);
    clock.advance(1_000);
    await member.batch();
    await eventually(() => expect(clock.nextIn).toBe(4_000));
    say('base-1');
    clock.advance(1_000);
    await member.batch();
    await eventually(() => expect(clock.nextIn).toBe(4_000));
    expect([member.connectionCount, clock.pending]).toEqual([1, 1]);
    clock.advance(4_000);
    expect(clock.pending).toBe(0);
  });

  it('passes on the newest of what a base said, and each message once', async () => {
    const member = await addMember();
    say('base-1', 'old');
    say('base-2');
    say('base-1', 'new');
    clock.advance(1_000);
    expect(await member.batch()).toEqual(['base-2', 'new']);
    say('base-3');
    clock.advance(1_000);
    expect(await member.batch()).toEqual(['base-3']);
  });

  it('waits no second with what a base says once, and keeps the order', async () => {
    const member = await addMember();
    say('base-1', 'heart');
    sayOnce('base-1', 'baseline');
    expect(await member.batch()).toEqual(['heart', 'baseline']);
    await eventually(async () => expect((await counts()).ok).toBe(1));
    clock.advance(1_000);
    await settle();
    expect(member.requestCount).toBe(1);
  });

  it('does not pass on what a base says once while it may be old, but heartbeats', async () => {
    const member = await addMember();
    isFenced = true;
    sayOnce('base-1', 'old goodbye');
    say('base-2');
    clock.advance(1_000);
    expect(await member.batch()).toEqual(['base-2']);
    isFenced = false;
    sayOnce('base-1', 'goodbye');
    expect(await member.batch()).toEqual(['goodbye']);
  });

  it('posts 1,200 bases in three batches, one after the other', async () => {
    const member = await addMember();
    member.hang();
    for (let index = 0; index < 1_200; index++) say(`base-${index}`);
    clock.advance(1_000);
    const sizes: number[] = [];
    const heard: string[] = [];
    for (let count = 1; count <= 3; count++) {
      const { body, response } = await member.received();
      const { messages } = JSON.parse(body) as { messages: { body: string }[] };
      sizes.push(messages.length);
      heard.push(...messages.map((message) => message.body));
      await settle();
      expect(member.requestCount).toBe(count);
      response.end('{}');
    }
    expect(sizes).toEqual([500, 500, 200]);
    expect(new Set(heard).size).toBe(1_200);
    await eventually(async () => expect(await counts()).toMatchObject({ sent: 1_200, ok: 3 }));
  });

  it('has one request at a time under way to a slow member, and sends it the newest next; others do not wait', async () => {
    const [slow, fast] = [await addMember(), await addMember()];
    slow.hang();
    say('base-1', 'first');
    clock.advance(1_000);
    const { response } = await slow.received();
    expect(await fast.batch()).toEqual(['first']);
    for (const body of ['second', 'third']) {
      say('base-1', body);
      clock.advance(900);
      sayOnce('base-1', body);
      expect(await fast.batch()).toEqual([body, body]);
    }
    expect(slow.requestCount).toBe(1);
    response.end('{}');
    expect(await slow.batch()).toEqual(['third', 'third']);
    await eventually(async () => expect((await counts()).ok).toBe(4));
    expect(await counts()).toMatchObject({ dropped: 0, error: 0 });
  });

  it('gives a member up that has not answered for 3 s, and tries again with the next messages', async () => {
    const hung = await addMember();
    hung.hang();
    say('base-1', 'lost');
    clock.advance(1_000);
    const { request } = await hung.received();
    const cut = new Promise((resolve) => request.socket.once('close', resolve));
    say('base-1', 'next');
    clock.advance(2_999);
    await settle();
    expect(await counts()).toMatchObject({ error: 0, dropped: 0 });
    clock.advance(1);
    await cut;
    expect(await hung.batch()).toEqual(['next']);
    expect(await counts()).toMatchObject({ sent: 0, dropped: 1, ok: 0, error: 1 });
    const [line] = log.lines;
    expect(line).toMatchObject({ msg: FAILED, err: { code: 'Cluster.MemberUnreachable' } });
    expect(JSON.stringify(line)).toContain(`member ${hung.address}: no answer within 3000 ms`);
  });

  it('passes nothing on that is older than 5 s: a late sign of life is none', async () => {
    const hung = await addMember();
    hung.hang();
    for (let index = 0; index < 1_000; index++) say(`base-${index}`);
    sayOnce('base-1000');
    for (const count of [1, 2]) {
      expect(await hung.batch()).toHaveLength(500);
      expect(await counts()).toMatchObject({ error: count - 1, dropped: (count - 1) * 500 });
      if (count === 2) sayOnce('young');
      clock.advance(3_000);
    }
    expect(await hung.batch()).toEqual(['young']);
    expect(await counts()).toMatchObject({ error: 2, dropped: 1_001 });
  });

  it('tells once of a member that is dead and once that it is back, and delays nobody meanwhile', async () => {
    const [dead, alive] = [await addMember(), await addMember()];
    await dead.close();
    for (const [index, body] of ['one', 'two', 'three'].entries()) {
      say('base-1', body);
      clock.advance(1_000);
      expect(await alive.batch()).toEqual([body]);
      await eventually(async () => expect(await counts()).toMatchObject({ error: index + 1, dropped: index + 1 }));
    }
    expect(logged()).toEqual([[40, FAILED, dead.address]]);
    expect(JSON.stringify(log.lines)).toContain('ECONNREFUSED');

    const back = await FakeMember.start('127.0.0.1', Number(dead.address.split(':')[1]));
    say('base-1', 'four');
    clock.advance(1_000);
    expect(await back.batch()).toEqual(['four']);
    await eventually(() => expect(logged().slice(1)).toEqual([[30, RESTORED, dead.address]]));
    await back.close();
    say('base-1', 'five');
    clock.advance(1_000);
    await eventually(() => expect(logged().slice(2)).toEqual([[40, FAILED, dead.address]]));
  });

  it.each([401, 500, 302])('takes an answer %i for a failure, and goes nowhere else', async (status) => {
    const member = await addMember();
    const elsewhere = await FakeMember.start();
    members.push(elsewhere);
    member.answer(status, { location: `http://${elsewhere.address}/` });
    say('base-1');
    clock.advance(1_000);
    await eventually(async () => expect(await counts()).toMatchObject({ error: 1, dropped: 1, sent: 0 }));
    expect([member.requestCount, elsewhere.requestCount]).toEqual([1, 0]);
    expect(JSON.stringify(log.lines)).toContain(`it answered HTTP ${status}`);
  });

  it('uses no proxy of the environment', async () => {
    const [member, proxy] = [await addMember(), await FakeMember.start()];
    members.push(proxy);
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'])
      vi.stubEnv(name, `http://${proxy.address}`);
    for (const name of ['NO_PROXY', 'no_proxy']) vi.stubEnv(name, '');
    try {
      sayOnce('base-1');
      expect(await member.batch()).toEqual(['base-1']);
      expect(proxy.requestCount).toBe(0);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it.each(['evil.example:7777', '127.0.0.1', '127.0.0.1:0', '127.0.0.1:65536', '127.0.0.1:1/x?', '::1:7777', ''])(
    'sends nothing to no such address: %j',
    async (address) => {
      peers = [peerAt(address)];
      say('base-1');
      clock.advance(1_000);
      await eventually(async () => expect((await counts()).error).toBe(1));
      expect(JSON.stringify(log.lines)).toContain(`member ${address}: is not an IP address and a port`);
    },
  );

  it.each([
    ['receiver is not at most 128', { id: 'controller-1\r\nx: y' }],
    ['receiver is not at most 128', { id: 'x'.repeat(129) }],
    ['receiverBoot is not at most 128', { boot: '' }],
    ['receiverBoot is not at most 128', { boot: 'a, counter=9' }],
  ])('sends nothing to a member that calls itself such things: %s', async (fault, more) => {
    const member = await addMember();
    peers = peers.map((peer) => ({ ...peer, ...more }));
    say('base-1');
    clock.advance(1_000);
    await eventually(async () => expect((await counts()).error).toBe(1));
    expect(JSON.stringify(log.lines)).toContain(`member ${member.address}: ${fault}`);
    expect(member.requestCount).toBe(0);
  });

  it('logs no more than the start of an address, which may be long in a Lease', async () => {
    peers = [peerAt('1'.repeat(100_000))];
    say('base-1');
    clock.advance(1_000);
    await eventually(async () => expect((await counts()).error).toBe(1));
    expect(JSON.stringify(log.lines).length).toBeLessThan(5_000);
  });

  it('sends to the new process of a member at once, while the request to the earlier one hangs', async () => {
    const member = await addMember();
    member.hang();
    say('base-1', 'to the first');
    clock.advance(1_000);
    expect(verdictOf(await member.received(), peers[0]).fault).toBeUndefined();
    peers = peers.map((peer) => ({ ...peer, boot: 'boot-2' }));
    say('base-1', 'to the second');
    clock.advance(1_000);
    const delivery = await member.received();
    expect(verdictOf(delivery, peers[0]).fault).toBeUndefined();
    expect(delivery.body).toContain('to the second');
    expect(await counts()).toMatchObject({ dropped: 1, error: 0 });
  });

  it('uses the new boot that a member proves, before the watch of Leases shows it', async () => {
    const member = await addMember();
    member.answer(401, (delivery) => {
      const verdict = verdictOf(delivery, { id: 'controller-1', boot: 'boot-2', address: '' });
      return { 'www-authenticate': verdict.challenge ?? '' };
    });
    say('base-1', 'dropped');
    clock.advance(1_000);
    expect(verdictOf(await member.received(), peers[0]).fault).toBeUndefined();
    await eventually(async () => expect(await counts()).toMatchObject({ error: 1, dropped: 1 }));
    member.answer(200, {});
    say('base-1', 'taken');
    clock.advance(1_000);
    const delivery = await member.received();
    expect(verdictOf(delivery, { id: 'controller-1', boot: 'boot-2', address: '' }).fault).toBeUndefined();
    expect(delivery.body).toContain('taken');
    await eventually(async () => expect(await counts()).toMatchObject({ ok: 1, sent: 1 }));
  });

  it.each([
    'Member-HMAC-SHA256 receiver=controller-1, receiverBoot=boot-2',
    `Member-HMAC-SHA256 receiver=controller-1, receiverBoot=boot-2, macs=${'0'.repeat(64)}`,
    `Member-HMAC-SHA256 receiver=controller-1, receiverBoot=${'x'.repeat(5_000)}`,
    'Member-HMAC-SHA256 receiver=controller-1, receiverBoot=a b',
    'Bearer',
  ])('goes by its Lease when a member answers %s', async (challenge) => {
    const member = await addMember();
    member.answer(401, { 'www-authenticate': challenge });
    for (const count of [1, 2]) {
      say('base-1');
      clock.advance(1_000);
      expect(verdictOf(await member.received(), peers[0]).fault).toBeUndefined();
      await eventually(async () => expect(await counts()).toMatchObject({ error: count }));
    }
  });

  it('asks at each sending who is a member: one that has come is told, one that has gone is not', async () => {
    const [stays, gone] = [await addMember(), await addMember()];
    gone.hang();
    say('base-1', 'first');
    clock.advance(1_000);
    expect(await stays.batch()).toEqual(['first']);
    const { request } = await gone.received();
    const cut = new Promise((resolve) => request.socket.once('close', resolve));
    say('base-1', 'second');
    peers = peers.slice(0, 1);
    const come = await addMember();
    clock.advance(1_000);
    expect([await stays.batch(), await come.batch()]).toEqual([['second'], ['second']]);
    await cut;
    expect(gone.requestCount).toBe(1);
    expect(await counts()).toMatchObject({ dropped: 1, error: 0 });
    expect(log.lines).toEqual([]);
  });

  it('keeps nothing for members that are not there', async () => {
    say('base-1');
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
    const late = await addMember();
    say('base-2');
    clock.advance(1_000);
    expect(await late.batch()).toEqual(['base-2']);
    expect(await counts()).toMatchObject({ dropped: 0 });
  });

  it('says what it has still heard when it is stopped', async () => {
    const member = await addMember();
    say('base-1');
    await relay.stop();
    expect(await member.batch()).toEqual(['base-1']);
    expect(await counts()).toMatchObject({ sent: 1, dropped: 0 });
  });

  it('is stopped after a second, when a member does not take that', async () => {
    const hung = await addMember();
    hung.hang();
    say('base-1');
    const stopped = relay.stop();
    await hung.received();
    clock.advance(1_000);
    await stopped;
    expect(await counts()).toMatchObject({ sent: 0, dropped: 1, error: 0 });
  });

  it('is stopped at once, also while a member hangs', async () => {
    const hung = await addMember();
    hung.hang();
    say('base-1');
    clock.advance(1_000);
    await hung.received();
    say('base-2');
    await relay.stop();
    sayOnce('base-3');
    expect(clock.pending).toBe(0);
    expect(hung.requestCount).toBe(1);
    expect(await counts()).toMatchObject({ error: 0 });
    expect(log.lines).toEqual([]);
  });
});
