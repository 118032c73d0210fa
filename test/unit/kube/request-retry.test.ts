import { describe, expect, it } from 'vitest';
import { ControllerError } from '../../../src/errors.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { mayResend, retryDelayMs, type TriesSoFar } from '../../../src/kube/transport/request-retry.ts';
import type { RestRequest } from '../../../src/kube/transport/rest-lane.ts';

const FIRST: TriesSoFar = { tries: 1, elapsedMs: 0, resends: 0 };
const answered = (status: number, retryAfterMs?: number): ApiError => new ApiError('GET /x', { status, retryAfterMs });
const withCause = (cause: unknown): ControllerError => new ControllerError('Kube.ConnectionFailed', 'cut', { cause });
const cutBy = (code: string): ControllerError => withCause(Object.assign(new Error(code), { code }));

describe('the wait before a request is sent again', () => {
  it.each<[string, unknown, number, number | undefined]>([
    ['429 with Retry-After', answered(429, 2_000), 0, 2_000],
    ['429', answered(429), 0, 1_000],
    ['503 with Retry-After', answered(503, 2_000), 0, 2_000],
    ['503', answered(503), 0, undefined],
    ['500 with Retry-After', answered(500, 2_000), 0, undefined],
    ['429 that asks for no wait', answered(429, 0), 0, 100],
    ['429, spread by half of it', answered(429, 2_000), 1, 3_000],
    ['no whole answer', cutBy('ECONNRESET'), 0, undefined],
  ])('after %s', (_, error, random, delayMs) => {
    expect(retryDelayMs(error, FIRST, () => random)).toBe(delayMs);
  });

  it.each([
    [4, 1_000],
    [5, undefined],
  ])('after %i tries is %s', (tries, delayMs) => {
    expect(retryDelayMs(answered(429), { ...FIRST, tries }, () => 0)).toBe(delayMs);
  });

  it.each([
    [29_000, 1_000],
    [29_001, undefined],
  ])('ends 30 s after the first try: after %i ms it is %s', (elapsedMs, delayMs) => {
    expect(retryDelayMs(answered(429), { ...FIRST, elapsedMs }, () => 0)).toBe(delayMs);
  });
});

describe('a request whose connection was cut', () => {
  const PATCH: RestRequest = { method: 'PATCH', path: '/x' };

  it.each<[string, boolean, unknown, RestRequest, TriesSoFar]>([
    ['by the server', true, cutBy('ECONNRESET'), PATCH, FIRST],
    ['while it was written', true, cutBy('EPIPE'), PATCH, FIRST],
    ['under undici', true, cutBy('UND_ERR_SOCKET'), PATCH, FIRST],
    ['again', false, cutBy('ECONNRESET'), PATCH, { ...FIRST, resends: 1 }],
    ['and that may leave once only', false, cutBy('ECONNRESET'), { ...PATCH, isOnce: true }, FIRST],
    ['and that creates', false, cutBy('ECONNRESET'), { ...PATCH, method: 'POST' }, FIRST],
    ['before it was made', false, cutBy('ECONNREFUSED'), PATCH, FIRST],
    ['for a reason without a code', false, withCause(new Error('x')), PATCH, FIRST],
    ['for a reason that is no error', false, withCause({ code: 'EPIPE' }), PATCH, FIRST],
    ['outside of the lane', false, Object.assign(new Error('x'), { code: 'EPIPE' }), PATCH, FIRST],
  ])('%s is sent again at once: %s', (_, isSentAgain, error, request, soFar) => {
    expect(mayResend(error, request, soFar)).toBe(isSentAgain);
  });
});
