import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { digestOf, type MemberProcess, MemberProver, MemberVerifier } from '../../../../tunnels/http/member-proof.ts';

const ENV = 'dev';
const OLD = 'the-old-key-of-16';
const NEW = 'the-new-key-of-16';
const PATH = '/members/messages';
const SENDER = { id: 'controller-0', boot: 'boot-0' };
const RECEIVER = { id: 'controller-1', boot: 'boot-1' };
const BODY = Buffer.from('{"messages":[]}');
const NOT_PROVEN = 'macs: none is made with a key of MEMBER_TOKEN for this ENV';
const NOT_NEW = 'counter is not above that of an earlier message of this sender';

const proverOf = (keys = [NEW], self = SENDER, env = ENV) => new MemberProver({ env, keys, self });
const verifierOf = (keys = [NEW], self = RECEIVER, env = ENV) => new MemberVerifier({ env, keys, self });
const prove = (prover: MemberProver, receiver: MemberProcess = RECEIVER, body = BODY) =>
  prover.prove('POST', PATH, receiver, body);
const verify = (verifier: MemberVerifier, authorization: string | undefined, method = 'POST', path = PATH) =>
  verifier.verify({ method, path, authorization });

const anyName = fc.stringMatching(/^[A-Za-z0-9._-]{1,40}$/);
const anyProcess = fc.record({ id: anyName, boot: anyName });

describe('a proof', () => {
  it('is accepted by the process that it is for, and has the digest of the body', () => {
    const property = fc.property(anyProcess, anyProcess, fc.uint8Array(), (sender, receiver, body) => {
      const authorization = proverOf([NEW], sender).prove('POST', PATH, receiver, body);
      expect(verify(verifierOf([NEW], receiver), authorization)).toEqual({ bodyDigest: digestOf(body) });
    });
    fc.assert(property);
  });

  it('is one auth scheme with seven fields, and holds no key', () => {
    const authorization = prove(proverOf([NEW, OLD]));
    expect(authorization).toMatch(
      /^Member-HMAC-SHA256 sender=controller-0, senderBoot=boot-0, receiver=controller-1, receiverBoot=boot-1, counter=1, body=[\da-f]{64}, macs=[\da-f]{64}\.[\da-f]{64}$/,
    );
    expect(authorization).not.toMatch(new RegExp(`${NEW}|${OLD}`));
  });

  it.each([
    ['sender', 'controller-2'],
    ['senderBoot', 'boot-2'],
    ['receiver', 'controller-2'],
    ['receiverBoot', 'boot-2'],
    ['counter', '2'],
    ['body', digestOf(Buffer.from('{}'))],
    ['macs', '0'.repeat(64)],
  ])('does not hold with another %s', (field, value) => {
    const authorization = prove(proverOf()).replace(new RegExp(`(?<= ${field}=)[^,]+`), value);
    expect(authorization).toContain(`${field}=${value}`);
    // Also where the receiver is the one that was put in.
    const verifiers = [verifierOf(), verifierOf([NEW], { ...RECEIVER, id: 'controller-2' })];
    verifiers.push(verifierOf([NEW], { ...RECEIVER, boot: 'boot-2' }));
    for (const verifier of verifiers) expect(verify(verifier, authorization).fault).toBe(NOT_PROVEN);
  });

  it.each([
    ['PUT', PATH],
    ['POST', '/heartbeat'],
    ['POST', `${PATH}?a=1`],
  ])('does not hold for %s %s', (method, path) => {
    expect(verify(verifierOf(), prove(proverOf()), method, path).fault).toBe(NOT_PROVEN);
  });

  it('does not hold for another ENV with the same key and names', () => {
    expect(verify(verifierOf([NEW], RECEIVER, 'prod'), prove(proverOf())).fault).toBe(NOT_PROVEN);
    expect(verify(verifierOf(), prove(proverOf([NEW], SENDER, 'prod'))).fault).toBe(NOT_PROVEN);
  });

  it('does not hold when any character of it is changed', () => {
    const authorization = prove(proverOf());
    const property = fc.property(fc.nat(authorization.length - 1), fc.string({ maxLength: 1 }), (at, character) => {
      const changed = authorization.slice(0, at) + character + authorization.slice(at + 1);
      fc.pre(changed !== authorization);
      expect(verify(verifierOf(), changed).bodyDigest).toBeUndefined();
    });
    fc.assert(property, { numRuns: 500 });
  });

  it('does not hold when text moves from one field to the next', () => {
    const authorization = prove(proverOf([NEW], { id: 'ab', boot: 'c' })).replace(
      'sender=ab, senderBoot=c',
      'sender=a, senderBoot=bc',
    );
    expect(verify(verifierOf(), authorization).fault).toBe(NOT_PROVEN);
  });

  it.each([
    [[OLD], [OLD], true],
    [[OLD], [NEW, OLD], true],
    [[NEW, OLD], [OLD], true],
    [[NEW, OLD], [NEW, OLD], true],
    [[NEW, OLD], [OLD, NEW], true],
    [[NEW, OLD], [NEW], true],
    [[NEW], [NEW, OLD], true],
    [[NEW], [NEW], true],
    [[OLD], [NEW], false],
    [[NEW], [OLD], false],
  ])('made with %j, checked with %j, is accepted: %s', (speaking, listening, isAccepted) => {
    expect(verify(verifierOf(listening), prove(proverOf(speaking))).fault).toBe(isAccepted ? undefined : NOT_PROVEN);
  });

  it.each([
    ['receiver is not at most 128 of A-Za-z0-9._-', { id: 'a, receiverBoot=b', boot: 'c' }],
    ['receiver is not at most 128 of A-Za-z0-9._-', { id: '', boot: 'c' }],
    ['receiverBoot is not at most 128 of A-Za-z0-9._-', { id: 'a', boot: '\r\n' }],
    ['receiverBoot is not at most 128 of A-Za-z0-9._-', { id: 'a', boot: 'x'.repeat(129) }],
  ])('is not made where %s', (fault, receiver) => {
    expect(() => prove(proverOf(), receiver)).toThrow(fault);
  });

  it('has room for the longest names', () => {
    const long = (start: string) => ({ id: start.repeat(128), boot: start.repeat(128) });
    const authorization = prove(proverOf([NEW, OLD], long('s')), long('r'));
    expect(verify(verifierOf([NEW], long('r')), authorization).fault).toBeUndefined();
  });
});

describe('a verifier', () => {
  it('accepts each proof once', () => {
    const [prover, verifier] = [proverOf(), verifierOf()];
    const [first, second] = [prove(prover), prove(prover)];
    expect([first, first, second, first, second].map((proof) => verify(verifier, proof).fault)).toEqual([
      undefined,
      NOT_NEW,
      undefined,
      NOT_NEW,
      NOT_NEW,
    ]);
  });

  it('refuses what is overtaken', () => {
    const [prover, verifier] = [proverOf(), verifierOf()];
    const [late, first] = [prove(prover), prove(prover)];
    expect(verify(verifier, first).fault).toBeUndefined();
    expect(verify(verifier, late).fault).toBe(NOT_NEW);
  });

  it('accepts a sender whose counter went up at other receivers', () => {
    const prover = proverOf();
    for (let index = 0; index < 100; index++) prove(prover, { id: 'controller-2', boot: 'boot-2' });
    const verifier = verifierOf();
    for (let index = 0; index < 3; index++) expect(verify(verifier, prove(prover)).fault).toBeUndefined();
  });

  it('counts each process of a sender by itself', () => {
    const verifier = verifierOf();
    const earlier = proverOf();
    for (let index = 0; index < 5; index++) verify(verifier, prove(earlier));
    expect(verify(verifier, prove(proverOf([NEW], { ...SENDER, boot: 'boot-9' }))).fault).toBeUndefined();
    expect(verify(verifier, prove(earlier)).fault).toBeUndefined();
  });

  it('accepts nothing that an earlier process of its replica was sent, and names itself', () => {
    const authorization = prove(proverOf());
    expect(verify(verifierOf(), authorization).fault).toBeUndefined();
    expect(verify(verifierOf([NEW], { ...RECEIVER, boot: 'boot-2' }), authorization)).toEqual({
      fault: 'receiverBoot is not the current one of controller-1',
      challenge: expect.stringMatching(
        /^Member-HMAC-SHA256 receiver=controller-1, receiverBoot=boot-2, macs=[\da-f]{64}$/,
      ),
    });
  });

  it('names itself to nobody without a key', () => {
    const authorization = prove(proverOf([OLD]), { ...RECEIVER, boot: 'boot-0' });
    expect(verify(verifierOf(), authorization)).toEqual({ fault: NOT_PROVEN, challenge: 'Member-HMAC-SHA256' });
  });

  it('is not made to forget a counter by messages that it refuses', () => {
    const [prover, verifier] = [proverOf(), verifierOf()];
    const authorization = prove(prover);
    verify(verifier, authorization);
    for (let index = 0; index < 2_000; index++) {
      const sender = { id: `controller-${index}`, boot: 'boot-0' };
      verify(verifier, prove(proverOf([OLD], sender)));
      verify(verifier, prove(proverOf([NEW], sender), { ...RECEIVER, boot: 'boot-0' }));
    }
    expect(verify(verifier, authorization).fault).toBe(NOT_NEW);
  });

  describe('that has accepted messages of 1,025 processes', () => {
    const proofs = Array.from({ length: 1_025 }, (_, index) =>
      prove(proverOf([NEW], { ...SENDER, boot: `boot-${index}` })),
    );
    let verifier: MemberVerifier;

    beforeEach(() => {
      verifier = verifierOf();
      for (const proof of proofs) expect(verify(verifier, proof).fault).toBeUndefined();
    });

    it('accepts none of them again', () => {
      const faults = proofs.map((proof) => verify(verifier, proof).fault);
      expect(new Set(faults)).toEqual(new Set(['receiverBoot is not the current one of controller-1']));
    });

    it('has another boot, which senders learn from a challenge', () => {
      const prover = proverOf();
      const refused = prove(prover);
      const boot = prover.challengedBoot(verify(verifier, refused).challenge, refused) ?? '';
      expect(boot).not.toBe(RECEIVER.boot);
      const proof = prove(prover, { ...RECEIVER, boot });
      expect([proof, proof].map((each) => verify(verifier, each).fault)).toEqual([undefined, NOT_NEW]);
    });
  });

  it('refuses any other header without a throw, and repeats nothing of it', () => {
    const fields = fc.dictionary(
      fc.constantFrom('sender', 'senderBoot', 'receiver', 'receiverBoot', 'counter', 'body', 'macs', '__proto__'),
      fc.oneof(fc.string(), fc.stringMatching(/^[\da-f]{64}$/), fc.nat().map(String)),
    );
    const header = fields.map((all) =>
      Object.entries(all)
        .map(([name, value]) => `${name}=${value}`)
        .join(', '),
    );
    const anyHeader = fc.oneof(
      fc.string(),
      fc.constant(undefined),
      header.map((text) => `Member-HMAC-SHA256 ${text}`),
    );
    const property = fc.property(anyHeader, (authorization) => {
      const verdict = verify(verifierOf(), authorization);
      expect(verdict.fault).toMatch(
        /^(Authorization|sender|senderBoot|receiver|receiverBoot|counter|body|macs)(:| is| has) [\w ,.:-]+$/,
      );
    });
    fc.assert(property, { numRuns: 500 });
  });

  const good = () => prove(proverOf());

  it('reads a header of 2,048 characters', () => {
    expect(verify(verifierOf(), good().padEnd(2_048)).fault).toContain('macs is not one or two MACs');
  });

  it.each([
    ['Authorization is not of the scheme Member-HMAC-SHA256', () => undefined],
    ['Authorization is not of the scheme Member-HMAC-SHA256', () => `Bearer ${NEW}`],
    ['Authorization is not of the scheme Member-HMAC-SHA256', () => 'Member-HMAC-SHA256'],
    ['Authorization has more than 2048 characters', () => good().padEnd(2_049)],
    ['Authorization has more than 7 fields', () => `${good()}, more=1`],
    ['sender is missing', () => good().replace('sender=', 'from=')],
    ['senderBoot is missing', () => good().replace('senderBoot=', 'sender=')],
    ['receiver is not at most 128 of A-Za-z0-9._-', () => good().replace('receiver=controller-1', 'receiver="a b"')],
    ['receiverBoot is not at most 128 of A-Za-z0-9._-', () => good().replace('boot-1', 'x'.repeat(129))],
    ['counter is not a whole number', () => good().replace('counter=1', 'counter=0')],
    ['counter is not a whole number', () => good().replace('counter=1', 'counter=-1')],
    ['counter is not a whole number', () => good().replace('counter=1', 'counter=1e3')],
    ['counter is not a whole number', () => good().replace('counter=1', `counter=${'9'.repeat(16)}`)],
    ['body is not 64 hexadecimal digits', () => good().replace(/body=[\da-f]/, 'body=')],
    ['macs is not one or two MACs', () => good().replace(/macs=[\da-f]+/, 'macs=')],
    ['macs is not one or two MACs', () => good().replace(/macs=([\da-f]+)/, 'macs=$1.$1.$1')],
  ])('names what is wrong: %s', (fault, header) => {
    expect(verify(verifierOf(), header()).fault).toContain(fault);
  });
});

describe('the boot in a challenge', () => {
  const EARLIER = { ...RECEIVER, boot: 'boot-0' };
  /** A request that `verifier` refuses, since it is for an earlier process, and the challenge. */
  function refusedBy(verifier: MemberVerifier, prover: MemberProver) {
    const authorization = prove(prover, EARLIER);
    return { authorization, challenge: verify(verifier, authorization).challenge ?? '' };
  }

  it.each([
    [[NEW], [NEW]],
    [[OLD], [NEW, OLD]],
    [[NEW, OLD], [OLD]],
    [
      [NEW, OLD],
      [OLD, NEW],
    ],
    [[NEW, OLD], [NEW]],
    [[NEW], [NEW, OLD]],
  ])(
    'is that of the process which refused, with the keys %j at the sender and %j at the receiver',
    (speaking, listening) => {
      const prover = proverOf(speaking);
      const { authorization, challenge } = refusedBy(verifierOf(listening), prover);
      expect(prover.challengedBoot(challenge, authorization)).toBe(RECEIVER.boot);
    },
  );

  it('is that of a process with the longest names', () => {
    const long = (start: string) => ({ id: start.repeat(128), boot: start.repeat(128) });
    const prover = proverOf([NEW, OLD], long('s'));
    const authorization = prove(prover, { ...long('r'), boot: 'boot-0' });
    const { challenge } = verify(verifierOf([NEW, OLD], long('r')), authorization);
    expect(prover.challengedBoot(challenge, authorization)).toBe(long('r').boot);
  });

  it.each<[string, (challenge: string) => string]>([
    ['has no MAC', (challenge) => challenge.replace(/, macs=.+/, '')],
    ['has an empty MAC', (challenge) => challenge.replace(/macs=.+/, 'macs=')],
    ['has another MAC', (challenge) => challenge.replace(/macs=.+/, `macs=${'0'.repeat(64)}`)],
    ['has three MACs', (challenge) => challenge.replace(/macs=(.+)/, 'macs=$1.$1.$1')],
    ['names another boot', (challenge) => challenge.replace('boot-1', 'boot-2')],
    ['names another receiver', (challenge) => challenge.replace('controller-1', 'controller-2')],
    ['names a boot with other characters', (challenge) => challenge.replace('boot-1', 'boot 1')],
    ['has another field', (challenge) => `${challenge}, more=1`],
    ['is of another scheme', (challenge) => challenge.replace('Member-HMAC-SHA256', 'Bearer')],
    ['is too long', (challenge) => challenge.padEnd(2_049)],
    ['comes twice', (challenge) => `${challenge}, ${challenge}`],
  ])('is not taken when the challenge %s', (_name, change) => {
    const prover = proverOf();
    const { authorization, challenge } = refusedBy(verifierOf(), prover);
    const changed = change(challenge);
    expect(changed).not.toBe(challenge);
    expect(prover.challengedBoot(changed, authorization)).toBeUndefined();
  });

  it('is not taken from the challenge to another request', () => {
    const prover = proverOf();
    const [first, second] = [refusedBy(verifierOf(), prover), refusedBy(verifierOf(), prover)];
    expect(prover.challengedBoot(first.challenge, second.authorization)).toBeUndefined();
  });

  it('is not taken from another ENV, nor without a common key', () => {
    const prover = proverOf();
    const { authorization, challenge } = refusedBy(verifierOf(), prover);
    expect(proverOf([NEW], SENDER, 'prod').challengedBoot(challenge, authorization)).toBeUndefined();
    expect(proverOf([OLD]).challengedBoot(challenge, authorization)).toBeUndefined();
  });

  it('is not taken from the MACs of the request itself', () => {
    const prover = proverOf();
    const authorization = prove(prover, EARLIER);
    const macs = authorization.slice(authorization.indexOf('macs='));
    const challenge = `Member-HMAC-SHA256 receiver=controller-1, receiverBoot=boot-0, ${macs}`;
    expect(prover.challengedBoot(challenge, authorization)).toBeUndefined();
  });

  it('is not there in whatever else a stranger answers', () => {
    const prover = proverOf();
    const authorization = prove(prover, EARLIER);
    const property = fc.property(fc.oneof(fc.anything(), fc.string()), (challenge) => {
      expect(prover.challengedBoot(challenge, authorization)).toBeUndefined();
    });
    fc.assert(property);
  });
});
