import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MemberClient, type PostOutcome } from '../../../../tunnels/http/member-client.ts';
import { MemberProver } from '../../../../tunnels/http/member-proof.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeMember } from './fake-member.ts';

const KEY = 'members-correct-horse';

let prover: MemberProver;
let client: MemberClient;
beforeEach(() => {
  prover = new MemberProver({ env: 'dev', keys: [KEY], self: { id: 'controller-0', boot: 'self-0' } });
  client = new MemberClient({ clock: new FakeClock(), prover });
});
afterEach(() => client.close());

function post(address: string): Promise<PostOutcome> {
  const peer = { id: 'controller-1', boot: 'boot-1', address };
  return client.post(peer, '{"messages":["secret"]}', new AbortController().signal);
}

it('a post that fails says why, and holds neither a key nor what bases said', async () => {
  const member = await FakeMember.start();
  await member.close();
  const { error } = await post(member.address);
  expect(error).toMatchObject({ code: 'Cluster.MemberUnreachable', cause: { code: 'ECONNREFUSED' } });
  expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/members-correct-horse|secret/);
  // The key is not shown by what holds it either.
  expect(inspect([prover, client], { depth: 20, showHidden: true })).not.toContain(KEY);
});

it.each([1, 65_535])('a post may go to port %i', async (port) => {
  // Nobody listens there.
  const { error } = await post(`127.0.0.1:${port}`);
  expect(error).toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});

it.each([
  [16 * 1024, true],
  [16 * 1024 + 1, false],
])('the answer to a post may have %i bytes: %s', async (byteCount, isTaken) => {
  const member = await FakeMember.start();
  member.answerWith('x'.repeat(byteCount));
  const { error } = await post(member.address);
  expect(error === undefined).toBe(isTaken);
  await member.close();
});

it('a post that fails shows 128 bytes of an address', async () => {
  const { error } = await post('1'.repeat(129));
  expect(error?.message).toBe(`member ${'1'.repeat(125)}…: is not an IP address and a port`);
});
