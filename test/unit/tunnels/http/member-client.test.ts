import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { MemberClient } from '../../../../tunnels/http/member-client.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { FakeMember } from './fake-member.ts';

const TOKEN = 'members-correct-horse';

it('a post that fails says why, and holds neither the token nor what bases said', async () => {
  const member = await FakeMember.start();
  await member.close();
  const client = new MemberClient({ clock: new FakeClock(), token: TOKEN });
  const posted = client.post(member.address, '{"messages":["secret"]}', new AbortController().signal);
  const error = await posted.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code: 'Cluster.MemberUnreachable', cause: { code: 'ECONNREFUSED' } });
  expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/members-correct-horse|secret/);
  client.close();
});
