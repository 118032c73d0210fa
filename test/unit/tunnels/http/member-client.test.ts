import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { MemberClient } from '../../../../tunnels/http/member-client.ts';
import { MemberProver } from '../../../../tunnels/http/member-proof.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeMember } from './fake-member.ts';

const KEY = 'members-correct-horse';

it('a post that fails says why, and holds neither a key nor what bases said', async () => {
  const member = await FakeMember.start();
  await member.close();
  const prover = new MemberProver({ env: 'dev', keys: [KEY], self: { id: 'controller-0', boot: 'self-0' } });
  const client = new MemberClient({ clock: new FakeClock(), prover });
  const peer = { id: 'controller-1', boot: 'boot-1', address: member.address };
  const { error } = await client.post(peer, '{"messages":["secret"]}', new AbortController().signal);
  expect(error).toMatchObject({ code: 'Cluster.MemberUnreachable', cause: { code: 'ECONNREFUSED' } });
  expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/members-correct-horse|secret/);
  // The key is not shown by what holds it either.
  expect(inspect([prover, client], { depth: 20, showHidden: true })).not.toContain(KEY);
  client.close();
});
