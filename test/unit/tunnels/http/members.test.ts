import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MemberProcess, MemberProver } from '../../../../tunnels/http/member-proof.ts';
import type { Members } from '../../../../tunnels/http/member-relay.ts';
import { eventually } from '../../../support/eventually.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { FakeMember } from './fake-member.ts';
import { heart, type PostOptions, post, runTestTunnel, seriesValue, type TestTunnel } from './http-world.ts';

const BASES_TOKEN = 'correct-horse-battery';
const ENV = 'dev';
const KEY = 'members-staple-correct';
/** A member whose Lease no replica has seen yet. */
const STRANGER = { id: 'controller-9', boot: 'boot-9' };
const PATH = '/members/messages';
const NOT_PROVEN = 'macs: none is made with a key of MEMBER_TOKEN for this ENV';
const KIB = 1024;

describe('members', () => {
  let clock: FakeClock;
  let replicas: Replica[];
  let first: Replica;
  let second: Replica;
  let third: Replica;
  let startCount: number;
  let stranger: MemberProver;

  /** A member that listens, and passes on what it hears to all others. */
  type Replica = TestTunnel & { readonly self: MemberProcess };

  const peerOf = ({ self, port }: Replica) => ({ ...self, address: `127.0.0.1:${port()}` });

  async function startReplica(
    options: Parameters<typeof runTestTunnel>[0] = {},
    more: Partial<Members> = {},
  ): Promise<Replica> {
    startCount++;
    const self = { id: `controller-${startCount}`, boot: `boot-${startCount}` };
    const peers = () => replicas.filter((replica) => replica.self !== members.self).map(peerOf);
    const members: Members = { env: ENV, keys: [KEY], self, peers, ...more };
    const tunnel = await runTestTunnel({ clock, tokens: [BASES_TOKEN], members, ...options });
    const started = { ...tunnel, self: members.self };
    replicas.push(started);
    return started;
  }

  beforeEach(async () => {
    clock = new FakeClock();
    replicas = [];
    startCount = 0;
    stranger = new MemberProver({ env: ENV, keys: [KEY], self: STRANGER });
    [first, second, third] = [await startReplica(), await startReplica(), await startReplica()];
  });

  afterEach(async () => {
    await Promise.all(replicas.map((replica) => replica.stop()));
    expect(clock.pending).toBe(0);
    for (const { lines } of replicas) {
      expect(JSON.stringify(lines)).not.toMatch(new RegExp(`${BASES_TOKEN}|${KEY}`));
    }
  });

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  /** A base speaks to one of the replicas. */
  async function say(replica: TestTunnel, body: unknown, options: PostOptions = {}): Promise<void> {
    const answer = await post(replica.port(), body, { headers: bearer(BASES_TOKEN), ...options });
    expect(answer.status).toBe(200);
    await answer.text();
  }

  const heard = ({ handler }: TestTunnel) => handler.calls.map(({ on }) => on);
  const postProven = (replica: Replica, body: unknown, authorization: string) =>
    post(replica.port(), body, { path: PATH, headers: authorization === '' ? {} : { authorization } });
  const textOf = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body));
  const proofFor = (receiver: MemberProcess, body: unknown, prover = stranger) =>
    prover.prove('POST', PATH, receiver, Buffer.from(textOf(body)));
  const postBatch = (replica: Replica, body: unknown, prover = stranger) =>
    postProven(replica, body, proofFor(replica.self, body, prover));
  const messageOf = (body: object) => ({ type: 'heart', sender: '192.0.2.9', body: JSON.stringify(body) });
  async function memberCount({ metrics }: TestTunnel, direction: string): Promise<number | undefined> {
    const { values } = await metrics.memberMessages.get();
    return values.find(({ labels }) => labels.direction === direction)?.value;
  }

  it('hear all bases, whichever member a base speaks to', async () => {
    await say(first, heart('base-1', { port: 1111 }));
    await say(second, heart('base-2', { localIP: '127.0.0.2' }));
    expect([heard(first), heard(second), heard(third)]).toEqual([
      ['linkUp', 'heartbeat'],
      ['linkUp', 'heartbeat'],
      ['linkUp'],
    ]);
    clock.advance(1_000);
    const known = await Promise.all(replicas.map(({ handler }) => handler.first('heartbeat', 2)));
    const told = known.map((beats) => beats.map(({ envelope, base }) => ({ ...envelope, ...base })));
    for (const beats of told) beats.sort((one, other) => one.identity.localeCompare(other.identity));
    expect(told[0]).toMatchObject([
      { identity: 'base-1', tunnel: 'http_tunnel_provider', ip: '127.0.0.1', port: 1111, publishedAt: undefined },
      { identity: 'base-2', tunnel: 'http_tunnel_provider', ip: '127.0.0.2', port: 1238, publishedAt: undefined },
    ]);
    expect([told[1], told[2]]).toEqual([told[0], told[0]]);
  });

  it('pass on what a base said to them, never what a member did', async () => {
    await say(first, heart('base-1'));
    clock.advance(1_000);
    await Promise.all([second, third].map(({ handler }) => handler.first('heartbeat')));
    // A second round carries whatever the first one left behind.
    clock.advance(1_000);
    await say(second, heart('base-2'));
    clock.advance(1_000);
    for (const { handler } of replicas) {
      const beats = await handler.first('heartbeat', 2);
      expect(beats.map(({ envelope }) => envelope.identity)).toEqual(['base-1', 'base-2']);
    }
    const received = await Promise.all(replicas.map((replica) => memberCount(replica, 'received')));
    expect(received).toEqual([1, 1, 2]);
    expect(await seriesValue(third.metrics.tunnelMessages, { type: 'heart' })).toBe(2);
  });

  it('pass on the true heartbeat beside a false one, each with its sender', async () => {
    const proxies = [{ address: '127.0.0.1', prefixLength: 32 }];
    const behindProxy = await startReplica({ trustedProxies: proxies });
    await say(behindProxy, heart('base-1'));
    const headers = { ...bearer(BASES_TOKEN), 'x-forwarded-for': '203.0.113.9' };
    await say(behindProxy, heart('base-1'), { headers });
    clock.advance(1_000);
    const beats = await first.handler.first('heartbeat', 2);
    expect(beats.map(({ envelope }) => envelope.sender)).toEqual(['127.0.0.1', '203.0.113.9']);
  });

  it('take the sender as a member of an earlier version writes it', async () => {
    const message = { ...messageOf(heart('base-1')), sender: '::ffff:192.0.2.9' };
    const body = JSON.stringify({ messages: [message] });
    expect((await postBatch(first, body)).status).toBe(200);
    expect((await first.handler.first('heartbeat'))[0]?.envelope.sender).toBe('192.0.2.9');
  });

  it('are told at once what a base says once: that it asks for its baseline, that it goes down', async () => {
    await say(first, heart('base-1').baseMetadata, { path: '/queryBaseline' });
    const [query] = await second.handler.first('baselineQuery');
    expect(query?.envelope.identity).toBe('base-1');
    await say(second, heart('base-2', { state: 'DEACTIVATED' }));
    await Promise.all([first, third].map(({ handler }) => handler.first('goingDown')));
    expect(clock.now()).toBe(0);
    expect(heard(third).toSorted()).toEqual(['baselineQuery', 'goingDown', 'linkUp']);
  });

  it('hear the newest of what a base said within a second', async () => {
    for (const version of ['1.0.0', '2.0.0', '3.0.0']) {
      const { baseMetadata } = heart('base-1');
      await say(first, heart('base-1', { baseMetadata: { ...baseMetadata, version } }));
    }
    clock.advance(1_000);
    const [beat] = await second.handler.first('heartbeat');
    expect(beat?.base.version).toBe('3.0.0');
    expect(await memberCount(second, 'received')).toBe(1);
  });

  it('hear both of two bases that have one identity, in their order', async () => {
    for (const port of [1111, 2222]) await say(first, heart('base-1', { port }));
    clock.advance(1_000);
    const beats = await second.handler.first('heartbeat', 2);
    expect(beats.map(({ base }) => base.port)).toEqual([1111, 2222]);
  });

  it('are not told of what was refused', async () => {
    for (const [body, status] of [
      [heart('base-1', { localIP: '10.0.0.1' }), 403],
      [heart('Base_1'), 400],
    ] as const) {
      const answer = await post(first.port(), body, { headers: bearer(BASES_TOKEN) });
      expect(answer.status).toBe(status);
    }
    expect(clock.pending).toBe(0);
  });

  it('are told of a message that the handler of the first could not bear', async () => {
    first.handler.throwOn = ({ on }) => (on === 'heartbeat' ? new Error('handler fault') : undefined);
    await say(first, heart('base-1'));
    clock.advance(1_000);
    expect(await second.handler.first('heartbeat')).toHaveLength(1);
  });

  it('prove the link: a base that is heard by way of another member is heard', async () => {
    const probe = second.tunnel.probeLink(5_000);
    await say(first, heart('base-1'));
    clock.advance(1_000);
    expect(await probe).toBe(true);
  });

  it('go on hearing from a member that was gone', async () => {
    await second.stop();
    replicas = [first, third];
    await say(first, heart('base-1'));
    clock.advance(1_000);
    await third.handler.first('heartbeat');
    second = await startReplica();
    await say(first, heart('base-1'));
    clock.advance(1_000);
    await second.handler.first('heartbeat');
    expect(heard(second)).toEqual(['linkUp', 'heartbeat']);
  });

  describe('that post', () => {
    it('are told how many messages were taken; one that is bad does not hold up the others', async () => {
      const messages = [
        messageOf(heart('base-1')),
        { ...messageOf(heart('base-2')), type: 'installBiz' },
        messageOf(heart('base-3', { localIP: '10.0.0.1' })),
        { type: 'heart', sender: '192.0.2.9', body: '{' },
        { type: 'queryBaseline', sender: '192.0.2.9', body: JSON.stringify(heart('base-4').baseMetadata) },
      ];
      const answer = await postBatch(first, { messages });
      expect([answer.status, await answer.json()]).toEqual([200, { taken: 2, refused: 3 }]);
      expect(heard(first)).toEqual(['linkUp', 'heartbeat', 'baselineQuery']);
      const refusals = first.lines.filter(({ msg }) => msg === 'message of a base refused');
      expect(refusals.map(({ code, identity, sender, reason }) => [code, identity ?? sender, reason])).toEqual([
        [
          'Arklet.InvalidMessage',
          expect.stringMatching(/127\.0\.0\.1$/),
          'messages[1].type is not one of heart, queryBaseline',
        ],
        ['Arklet.AddressRefused', 'base-3', expect.stringContaining('localIP 10.0.0.1 is in no network')],
        ['Arklet.InvalidMessage', '192.0.2.9', 'payload is not JSON'],
      ]);
      expect(await seriesValue(first.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(2);
      expect(await seriesValue(first.metrics.tunnelMessages, { type: 'heart' })).toBe(3);
      expect(await seriesValue(first.metrics.tunnelMessages, { type: 'queryBaseline' })).toBe(1);
      expect(await memberCount(first, 'received')).toBe(5);
      expect(clock.pending).toBe(0);
    });

    async function expectRefused(answer: Response, fault: string, challenge = /^Member-HMAC-SHA256$/): Promise<void> {
      expect([answer.status, await answer.json()]).toEqual([401, { code: 'Arklet.Unauthenticated', message: fault }]);
      expect(answer.headers.get('www-authenticate')).toMatch(challenge);
      for (const replica of replicas) expect(heard(replica)).not.toContain('heartbeat');
    }

    const batch = () => ({ messages: [messageOf(heart('base-1'))] });

    it.each([BASES_TOKEN, KEY])('get 401 with the token %s, as nobody sends one', async (token) => {
      const answer = await postProven(first, batch(), `Bearer ${token}`);
      await expectRefused(answer, 'Authorization is not of the scheme Member-HMAC-SHA256');
      expect(await seriesValue(first.metrics.tunnelInvalidMessages, { code: 'Arklet.Unauthenticated' })).toBe(1);
      const [line] = first.lines.filter(({ msg }) => msg === 'message of a base refused');
      expect(line).toMatchObject({ code: 'Arklet.Unauthenticated' });
    });

    it('get 401 with a proof by another key', async () => {
      const other = new MemberProver({ env: ENV, keys: ['another-key-of-16'], self: STRANGER });
      await expectRefused(await postBatch(first, batch(), other), NOT_PROVEN);
    });

    it('get 401 with a message of another ENV that has the same key and names', async () => {
      const other = new MemberProver({ env: 'prod', keys: [KEY], self: STRANGER });
      await expectRefused(await postBatch(first, batch(), other), NOT_PROVEN);
    });

    it('get 401 with a message for another member', async () => {
      const proof = proofFor(second.self, batch());
      await expectRefused(await postProven(first, batch(), proof), 'receiver is not controller-1');
    });

    it('get 401 with a message for an earlier process, and the name of this one', async () => {
      const proof = proofFor({ ...first.self, boot: 'boot-0' }, batch());
      const challenge = /^Member-HMAC-SHA256 receiver=controller-1, receiverBoot=boot-1, macs=[\da-f]{64}$/;
      const fault = 'receiverBoot is not the current one of controller-1';
      await expectRefused(await postProven(first, batch(), proof), fault, challenge);
    });

    it('get 401 with another payload than the proven one', async () => {
      const proof = proofFor(first.self, { messages: [] });
      await expectRefused(await postProven(first, batch(), proof), 'body is not the digest of the payload');
    });

    it('get 401 for a message that was posted before', async () => {
      const proof = proofFor(first.self, { messages: [] });
      expect((await postProven(first, { messages: [] }, proof)).status).toBe(200);
      const answer = await postProven(first, { messages: [] }, proof);
      await expectRefused(answer, 'counter is not above that of an earlier message of this sender');
    });

    it('get 401 for all but the first of many copies that come at once', async () => {
      const proof = proofFor(first.self, batch());
      const answers = await Promise.all(Array.from({ length: 20 }, () => postProven(first, batch(), proof)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(19).fill(401)]);
      expect(heard(first)).toEqual(['linkUp', 'heartbeat']);
    });

    it('get 401 on another path or query than the proven one', async () => {
      const proof = proofFor(first.self, batch());
      for (const path of [`${PATH}?x=1`, `${PATH}/`, PATH.toUpperCase()]) {
        const answer = await post(first.port(), batch(), { path, headers: { authorization: proof } });
        await expectRefused(answer, NOT_PROVEN);
      }
    });

    it('get their answer before the body is read', async () => {
      const socket = connect(first.port(), '127.0.0.1');
      const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n`;
      socket.write(`${head}Authorization: ${proofFor(second.self, batch())}\r\n\r\n`);
      const [answer] = await once(socket, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /);
      socket.destroy();
    });

    it('need a proof also where bases need no token', async () => {
      const open = await startReplica({ tokens: undefined });
      expect((await postProven(open, { messages: [] }, '')).status).toBe(401);
      expect((await postBatch(open, { messages: [] })).status).toBe(200);
    });

    it('cannot speak as a base with a proof', async () => {
      for (const path of ['/heartbeat', '/queryBaseline']) {
        const authorization = stranger.prove('POST', path, first.self, Buffer.from(textOf(heart('base-1'))));
        expect((await post(first.port(), heart('base-1'), { path, headers: { authorization } })).status).toBe(401);
      }
      expect(heard(first)).toEqual(['linkUp']);
    });

    it.each([
      [400, 'payload is not JSON', '{'],
      [400, 'messages is not a list', {}],
      [400, 'messages has 501 entries, 500 are allowed', { messages: Array(501).fill(messageOf(heart('base-1'))) }],
      [413, 'payload has more than 1048576 bytes', ' '.repeat(1024 * KIB + 1)],
    ])('get %i: %s', async (status, message, body) => {
      const answer = await postBatch(first, body);
      expect([answer.status, await answer.json()]).toEqual([status, { code: 'Arklet.InvalidMessage', message }]);
      expect(heard(first)).toEqual(['linkUp']);
      expect(await seriesValue(first.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(1);
    });

    it('may post 1 MiB, bases still 16 KiB', async () => {
      const text = JSON.stringify({ messages: [messageOf(heart('base-1'))] });
      expect((await postBatch(first, text.padEnd(1024 * KIB))).status).toBe(200);
      const headers = bearer(BASES_TOKEN);
      const answer = await post(first.port(), JSON.stringify(heart('base-1')).padEnd(16 * KIB + 1), { headers });
      expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
        413,
        'payload has more than 16384 bytes',
      ]);
    });

    it('post, and nothing else is there', async () => {
      const answer = await fetch(`http://127.0.0.1:${first.port()}${PATH}`, { headers: { authorization: 'x' } });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    });
  });

  describe('that follow a Lease which a stranger wrote', () => {
    let foreign: FakeMember;

    beforeEach(async () => {
      foreign = await FakeMember.start();
    });

    afterEach(() => foreign.close());

    /** A replica that takes the foreign listener for that member; what the listener gets from it. */
    async function caughtAs(process: MemberProcess) {
      const peers = () => [{ ...process, address: foreign.address }];
      const misled = await startReplica({}, { peers });
      await say(misled, heart('base-1'), { path: '/heartbeat' });
      clock.advance(1_000);
      const { request, body } = await foreign.received();
      const authorization = request.headers.authorization ?? '';
      const all = [request.method, request.url, ...request.rawHeaders, body].join('\n');
      return { authorization, all, body };
    }

    it.each([
      ['nobody', () => ({ id: 'controller-7', boot: 'boot-7' })],
      ['an earlier process of another', () => ({ ...first.self, boot: 'boot-0' })],
    ])('give a listener that poses as %s nothing that opens anything', async (_name, process) => {
      const { authorization, all, body } = await caughtAs(process());
      expect(body).toContain('base-1');
      expect(all).not.toMatch(new RegExp(`${KEY}|${BASES_TOKEN}|Bearer`));
      const forged = first.self;
      const changed = authorization
        .replace(/receiver=[^,]+/, `receiver=${forged.id}`)
        .replace(/receiverBoot=[^,]+/, `receiverBoot=${forged.boot}`);
      for (const replica of replicas) {
        for (const proof of [authorization, changed]) {
          expect((await postProven(replica, body, proof)).status).toBe(401);
        }
        const headers = { authorization };
        expect((await post(replica.port(), heart('base-1'), { headers })).status).toBe(401);
      }
      expect([heard(first), heard(second), heard(third)]).toEqual([['linkUp'], ['linkUp'], ['linkUp']]);
    });

    it.each([
      ['no MAC', async () => ''],
      ['the MAC of the refused message', async (proof: string) => `, macs=${/macs=(\S+)/.exec(proof)?.[1]}`],
      [
        'the MAC of a challenge to another message',
        async () => {
          const answer = await postProven(first, '{}', proofFor({ ...first.self, boot: 'boot-0' }, '{}'));
          return `, macs=${/macs=(\S+)/.exec(answer.headers.get('www-authenticate') ?? '')?.[1]}`;
        },
      ],
    ])('are not led to another process by a challenge with %s', async (_name, macsFor) => {
      const peers = () => [{ ...first.self, boot: 'boot-0', address: foreign.address }];
      const misled = await startReplica({}, { peers });
      foreign.hang();
      await say(misled, heart('base-1'));
      clock.advance(1_000);
      const { request, response } = await foreign.received();
      const macs = await macsFor(request.headers.authorization ?? '');
      const challenge = `Member-HMAC-SHA256 receiver=${first.self.id}, receiverBoot=${first.self.boot}${macs}`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      await eventually(async () => {
        const { values } = await misled.metrics.memberRequests.get();
        expect(values.find(({ labels }) => labels.result === 'error')?.value).toBe(1);
      });
      await say(misled, heart('base-1'));
      clock.advance(1_000);
      const captured = await foreign.received();
      expect(captured.request.headers.authorization).toContain('receiver=controller-1, receiverBoot=boot-0');
      const answer = await postProven(first, captured.body, captured.request.headers.authorization ?? '');
      expect([answer.status, heard(first)]).toEqual([401, ['linkUp']]);
      captured.response.end();
    });

    it('give a listener that poses as another member what that one takes once, unchanged, and nobody else', async () => {
      const { authorization, all, body } = await caughtAs(first.self);
      expect(all).not.toMatch(new RegExp(`${KEY}|${BASES_TOKEN}|Bearer`));
      for (const replica of [second, third]) expect((await postProven(replica, body, authorization)).status).toBe(401);
      expect((await postProven(first, body, authorization)).status).toBe(200);
      expect((await postProven(first, body, authorization)).status).toBe(401);
      expect([heard(first), heard(second)]).toEqual([['linkUp', 'heartbeat'], ['linkUp']]);
    });
  });

  describe('whose keys are replaced', () => {
    const OLD = ['the-old-key-of-16'];
    const BOTH = ['the-new-key-of-16', 'the-old-key-of-16'];
    const NEW = ['the-new-key-of-16'];

    it.each([
      [OLD, OLD],
      [OLD, BOTH],
      [BOTH, OLD],
      [BOTH, BOTH],
      [BOTH, NEW],
      [NEW, BOTH],
      [NEW, NEW],
    ])('hear each other with %j and %j', async (speaking, listening) => {
      await Promise.all(replicas.map((replica) => replica.stop()));
      replicas = [];
      const speaker = await startReplica({}, { keys: speaking });
      const listener = await startReplica({}, { keys: listening });
      await say(speaker, heart('base-1'));
      clock.advance(1_000);
      await listener.handler.first('heartbeat');
    });
  });

  it('hear of a base although the sender does not know yet that they were started again', async () => {
    const earlier = { ...second.self, boot: 'boot-0' };
    const behind = await startReplica({}, { peers: () => [{ ...peerOf(second), ...earlier }] });
    await say(behind, heart('base-1'));
    clock.advance(1_000);
    await eventually(async () => {
      const { values } = await behind.metrics.memberRequests.get();
      expect(values.find(({ labels }) => labels.result === 'error')?.value).toBe(1);
    });
    expect(heard(second)).toEqual(['linkUp']);
    await say(behind, heart('base-1'));
    clock.advance(1_000);
    await second.handler.first('heartbeat');
  });

  it.each([
    [['the-new-key-of-16', KEY], [KEY]],
    [[KEY], ['the-new-key-of-16', KEY]],
  ])('hear so also with the keys %j at the sender and %j at the receiver', async (speaking, listening) => {
    const listener = await startReplica({}, { keys: listening });
    const peer = { ...peerOf(listener), boot: 'boot-0' };
    const behind = await startReplica({}, { keys: speaking, peers: () => [peer] });
    for (const result of ['error', 'ok']) {
      await say(behind, heart('base-1'));
      clock.advance(1_000);
      await eventually(async () => {
        const { values } = await behind.metrics.memberRequests.get();
        expect(values.find(({ labels }) => labels.result === result)?.value).toBe(1);
      });
    }
    expect(heard(listener)).toEqual(['linkUp', 'heartbeat']);
  });

  it('are not there for a replica that is alone', async () => {
    const alone = await startReplica({ members: undefined });
    expect((await postBatch(alone, { messages: [] })).status).toBe(404);
    replicas = replicas.filter((replica) => replica !== alone);
    await say(alone, heart('base-1'));
    await settle();
    expect(clock.pending).toBe(0);
    await alone.stop();
  });

  it('carry the largest heartbeats that a base may send, all of them', async () => {
    const large = (index: number) => JSON.stringify(heart(`base-${index}`, { note: '\u0000"'.repeat(2_000) }));
    for (let index = 0; index < 100; index++) await say(first, large(index));
    clock.advance(1_000);
    await second.handler.first('heartbeat', 100);
    expect(await memberCount(second, 'received')).toBe(100);
    const { values } = await first.metrics.memberRequests.get();
    expect(values.find(({ labels }) => labels.result === 'error')?.value).toBe(0);
  });
});
