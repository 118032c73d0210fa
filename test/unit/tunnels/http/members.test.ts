import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeClock, settle } from '../../../support/fake-clock.ts';
import { heart, type PostOptions, post, runTestTunnel, seriesValue, type TestTunnel } from './http-world.ts';

const BASES_TOKEN = 'correct-horse-battery';
const MEMBERS_TOKEN = 'members-staple-correct';
const PATH = '/members/messages';
const KIB = 1024;

describe('members', () => {
  let clock: FakeClock;
  let replicas: TestTunnel[];
  let first: TestTunnel;
  let second: TestTunnel;
  let third: TestTunnel;

  /** Listens, and tells all others. */
  async function startReplica(options: Parameters<typeof runTestTunnel>[0] = {}): Promise<TestTunnel> {
    const others = () => replicas.filter((replica) => replica !== started);
    const addresses = () => others().map((replica) => `127.0.0.1:${replica.port()}`);
    const members = { token: MEMBERS_TOKEN, addresses };
    const started: TestTunnel = await runTestTunnel({ clock, token: BASES_TOKEN, members, ...options });
    replicas.push(started);
    return started;
  }

  beforeEach(async () => {
    clock = new FakeClock();
    replicas = [];
    [first, second, third] = [await startReplica(), await startReplica(), await startReplica()];
  });

  afterEach(async () => {
    await Promise.all(replicas.map((replica) => replica.stop()));
    expect(clock.pending).toBe(0);
    for (const { lines } of replicas) {
      expect(JSON.stringify(lines)).not.toMatch(new RegExp(`${BASES_TOKEN}|${MEMBERS_TOKEN}`));
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
  const postBatch = (replica: TestTunnel, body: unknown, token = MEMBERS_TOKEN) =>
    post(replica.port(), body, { path: PATH, headers: bearer(token) });
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
      expect(refusals.map(({ code, identity, reason }) => [code, identity, reason])).toEqual([
        [
          'Arklet.InvalidMessage',
          expect.stringMatching(/127\.0\.0\.1$/),
          'messages[1].type is none of heart, queryBaseline',
        ],
        ['Arklet.AddressRefused', 'base-3', expect.stringContaining('localIP 10.0.0.1 is in none of')],
        ['Arklet.InvalidMessage', '192.0.2.9', 'payload is not JSON'],
      ]);
      expect(await seriesValue(first.metrics.tunnelInvalidMessages, { code: 'Arklet.InvalidMessage' })).toBe(2);
      expect(await seriesValue(first.metrics.tunnelMessages, { type: 'heart' })).toBe(3);
      expect(await seriesValue(first.metrics.tunnelMessages, { type: 'queryBaseline' })).toBe(1);
      expect(await memberCount(first, 'received')).toBe(5);
      expect(clock.pending).toBe(0);
    });

    it.each([
      [401, 'Arklet.Unauthenticated', 'the Authorization header does not carry the members’ token', BASES_TOKEN],
      [401, 'Arklet.Unauthenticated', 'the Authorization header does not carry the members’ token', ''],
    ])('get %i %s: %s, with the token %j', async (status, code, message, token) => {
      const answer = await postBatch(first, { messages: [messageOf(heart('base-1'))] }, token);
      expect([answer.status, await answer.json()]).toEqual([status, { code, message }]);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      expect(heard(first)).toEqual(['linkUp']);
      expect(await seriesValue(first.metrics.tunnelInvalidMessages, { code })).toBe(1);
    });

    it('need their token also where bases need none', async () => {
      const open = await startReplica({ token: undefined });
      expect((await postBatch(open, { messages: [] }, '')).status).toBe(401);
      expect((await post(open.port(), { messages: [] }, { path: PATH })).status).toBe(401);
      expect((await postBatch(open, { messages: [] })).status).toBe(200);
    });

    it('cannot speak as a base with it', async () => {
      for (const path of ['/heartbeat', '/queryBaseline']) {
        const headers = bearer(MEMBERS_TOKEN);
        expect((await post(first.port(), heart('base-1'), { path, headers })).status).toBe(401);
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

    it('may post 1 MiB, bases still 64 KiB', async () => {
      const text = JSON.stringify({ messages: [messageOf(heart('base-1'))] });
      expect((await postBatch(first, text.padEnd(1024 * KIB))).status).toBe(200);
      const headers = bearer(BASES_TOKEN);
      const answer = await post(first.port(), JSON.stringify(heart('base-1')).padEnd(64 * KIB + 1), { headers });
      expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
        413,
        'payload has more than 65536 bytes',
      ]);
    });

    it('post, and nothing else is there', async () => {
      const answer = await fetch(`http://127.0.0.1:${first.port()}${PATH}`, { headers: bearer(MEMBERS_TOKEN) });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    });
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
    const large = (index: number) => JSON.stringify(heart(`base-${index}`, { note: '\u0000"'.repeat(7_000) }));
    for (let index = 0; index < 30; index++) await say(first, large(index));
    clock.advance(1_000);
    await second.handler.first('heartbeat', 30);
    expect(await memberCount(second, 'received')).toBe(30);
    const { values } = await first.metrics.memberRequests.get();
    expect(values.find(({ labels }) => labels.result === 'error')?.value).toBe(0);
  });
});
