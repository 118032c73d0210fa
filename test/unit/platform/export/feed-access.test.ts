import { describe, expect, it, vi } from 'vitest';
import { collectionPathOf } from '../../../../src/kube/resource.ts';
import { silentLogger } from '../../../../src/logger.ts';
import { FeedAccess } from '../../../../src/platform/export/feed-access.ts';
import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, TokenAccess } from '../../../../src/reconcile/token-access.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

describe('access to the feed', () => {
  const OF_GROUP = { group: 'external', namespace: undefined };
  const TOKEN = 'a'.repeat(40);

  function accessTo(options: { authenticated?: boolean; allowed?: boolean; groups?: Record<string, string[]> } = {}) {
    const clock = new FakeClock();
    const tokenReviews = vi.fn(async () => ({
      metadata: { name: '' },
      spec: { token: '' },
      status: { authenticated: options.authenticated ?? true, user: { username: 'lb', groups: ['g'], uid: 'u' } },
    }));
    const accessReviews = vi.fn(async (_object: { spec: Record<string, unknown> }) => ({
      metadata: { name: '' },
      spec: {},
      status: { allowed: options.allowed ?? true },
    }));
    const { groups } = options;
    const access = new FeedAccess({
      tokens: groups && { namesOf: (token) => groups[token] && new Set(groups[token]) },
      users: new TokenAccess({
        tokenReviews: { create: tokenReviews },
        accessReviews: { create: accessReviews },
        clock,
        logger: silentLogger,
      }),
    });
    const of = (
      token: string,
      scope: { group: string; namespace: string | undefined } = OF_GROUP,
      source = '10.1.1.1',
    ) => access.of({ header: `Bearer ${token}`, source }, scope);
    return { access, of, clock, tokenReviews, accessReviews };
  }

  it('needs a token', async () => {
    const { access, tokenReviews } = accessTo();
    for (const header of [undefined, '', 'Basic abc', 'Bearer ', 'Bearer a b', `Bearer ${'x'.repeat(16_385)}`])
      expect([header, await access.of({ header, source: '' }, OF_GROUP)]).toEqual([header, 'Unauthenticated']);
    expect(tokenReviews).not.toHaveBeenCalled();
  });

  it('has whoever may get ExportServices, there where the request is about', async () => {
    const { of, accessReviews } = accessTo();
    expect(await of('t')).toBe('Allowed');
    expect(await of('t', { group: 'external', namespace: 't1' })).toBe('Allowed');
    const asked = accessReviews.mock.calls.map(([{ spec }]) => spec);
    const attributes = {
      group: 'platform.koupleless.io',
      version: 'v1alpha1',
      resource: 'exportservices',
      verb: 'get',
    };
    expect(asked).toEqual([
      { user: 'lb', uid: 'u', groups: ['g'], extra: undefined, resourceAttributes: attributes },
      { user: 'lb', uid: 'u', groups: ['g'], extra: undefined, resourceAttributes: { ...attributes, namespace: 't1' } },
    ]);
  });

  it('for one namespace is none for another one', async () => {
    const { of, accessReviews } = accessTo();
    for (const namespace of ['t1', 't2', 't1', undefined]) await of('t', { group: 'external', namespace });
    const asked = accessReviews.mock.calls.map(([{ spec }]) => (spec.resourceAttributes as object | undefined) ?? {});
    expect(asked.map((attributes) => ('namespace' in attributes ? attributes.namespace : 'all'))).toEqual([
      't1',
      't2',
      'all',
    ]);
  });

  it('is asked about where the API server answers such questions', () => {
    expect([TOKEN_REVIEWS, SUBJECT_ACCESS_REVIEWS].map((kind) => collectionPathOf(kind))).toEqual([
      '/apis/authentication.k8s.io/v1/tokenreviews',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    ]);
    expect([TOKEN_REVIEWS.isNamespaced, SUBJECT_ACCESS_REVIEWS.isNamespaced]).toEqual([false, false]);
  });

  it('may need a token of 16,384 characters', async () => {
    const { of, tokenReviews } = accessTo();
    expect(await of('x'.repeat(16_384))).toBe('Allowed');
    expect(tokenReviews).toHaveBeenCalledWith(expect.anything(), { timeoutMs: 5_000 });
  });

  it('has nobody else', async () => {
    expect(await accessTo({ authenticated: false }).of('t')).toBe('Unauthenticated');
    expect(await accessTo({ allowed: false }).of('t')).toBe('Forbidden');
  });

  it('has a balancer with a token of the group, without a question to the API server', async () => {
    const { of, tokenReviews } = accessTo({ groups: { [TOKEN]: ['external'] } });
    expect(await of(TOKEN)).toBe('Balancer');
    expect(await of(TOKEN, { group: 'external', namespace: 't1' })).toBe('Balancer');
    expect(await of(TOKEN, { group: 'other', namespace: undefined })).toBe('Forbidden');
    expect(tokenReviews).not.toHaveBeenCalled();
  });

  it('is asked for once a minute, and a refusal for less', async () => {
    const { of, clock, tokenReviews } = accessTo();
    await Promise.all([of('t'), of('t')]);
    clock.advance(59_999);
    await of('t');
    expect(tokenReviews).toHaveBeenCalledTimes(1);
    clock.advance(1);
    await of('t');
    expect(tokenReviews).toHaveBeenCalledTimes(2);
    const refused = accessTo({ allowed: false });
    await refused.of('t');
    refused.clock.advance(9_999);
    await refused.of('t');
    expect(refused.tokenReviews).toHaveBeenCalledTimes(1);
    refused.clock.advance(1);
    await refused.of('t');
    expect(refused.tokenReviews).toHaveBeenCalledTimes(2);
  });

  it('is unknown while the API server does not answer, and is asked for again', async () => {
    const { of, tokenReviews } = accessTo();
    tokenReviews.mockRejectedValueOnce(new Error('down'));
    expect(await of('t')).toBe('Unknown');
    expect(await of('t')).toBe('Allowed');
  });

  it('costs the API server little however many tokens one sends, and others nothing', async () => {
    const { of, tokenReviews, clock } = accessTo({ authenticated: false });
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, index) => of(`t${index}`)));
    expect(answers.filter((answer) => answer === 'Busy')).toHaveLength(980);
    expect(tokenReviews).toHaveBeenCalledTimes(20);
    expect(await of('other', OF_GROUP, '10.1.1.2')).toBe('Unauthenticated');
    clock.advance(500);
    expect(await of('again')).toBe('Unauthenticated');
    // From many places.
    const many = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => of(`u${index}`, OF_GROUP, `10.2.0.${index}`)),
    );
    expect(many.filter((answer) => answer === 'Busy').length).toBeGreaterThan(880);
  });

  it('that is taken back ends a watch, however many unknown tokens its owner sends', async () => {
    const options = { authenticated: true };
    const { access, of, clock } = accessTo(options);
    const watch = { header: 'Bearer t', source: '10.1.1.1', isWatching: true };
    expect(await access.of(watch, OF_GROUP)).toBe('Allowed');
    options.authenticated = false;
    clock.advance(60_000);
    for (let index = 0; index < 200; index++)
      await of(`t${index}`, OF_GROUP, index < 100 ? '10.1.1.1' : `10.2.0.${index}`);
    expect(await of('t')).toBe('Busy');
    expect(await access.of(watch, OF_GROUP)).toBe('Unauthenticated');
  });

  it('costs the API server 100 questions of watches at once and then one every 50 ms', async () => {
    const { access, clock } = accessTo();
    let count = 0;
    const ask = () => access.of({ header: `Bearer t${count++}`, source: '10.1.1.1', isWatching: true }, OF_GROUP);
    for (let index = 0; index < 100; index++) expect(await ask()).toBe('Allowed');
    expect(await ask()).toBe('Busy');
    clock.advance(50);
    expect([await ask(), await ask()]).toEqual(['Allowed', 'Busy']);
  });

  it('costs the API server 100 questions at once and then one every 50 ms, from however many places', async () => {
    const { of, clock } = accessTo({ authenticated: false });
    let count = 0;
    const ask = () => of(`t${count}`, OF_GROUP, `10.2.0.${count++}`);
    for (let index = 0; index < 100; index++) expect(await ask()).toBe('Unauthenticated');
    expect(await ask()).toBe('Busy');
    clock.advance(49);
    expect(await ask()).toBe('Busy');
    clock.advance(1);
    expect([await ask(), await ask()]).toEqual(['Unauthenticated', 'Busy']);
  });

  it('is remembered for a thousand tokens, and asked for again beyond', async () => {
    const { of, clock, tokenReviews } = accessTo();
    const ask = (index: number) => {
      clock.advance(50);
      return of(`t${index}`, OF_GROUP, `10.2.0.${index}`);
    };
    for (let index = 0; index < 1_000; index++) await ask(index);
    await ask(0);
    expect(tokenReviews).toHaveBeenCalledTimes(1_000);
    await ask(1_000);
    await ask(0);
    expect(tokenReviews).toHaveBeenCalledTimes(1_002);
  });

  it('costs 20 questions of one place at once, and then one every 500 ms', async () => {
    const { of, clock } = accessTo({ authenticated: false });
    let count = 0;
    const ask = () => of(`t${count++}`);
    for (let index = 0; index < 20; index++) expect(await ask()).toBe('Unauthenticated');
    clock.advance(499);
    expect(await ask()).toBe('Busy');
    clock.advance(1);
    expect([await ask(), await ask()]).toEqual(['Unauthenticated', 'Busy']);
  });
});
