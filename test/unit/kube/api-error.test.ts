import { describe, expect, it } from 'vitest';
import { ControllerError } from '../../../src/errors.ts';
import * as judge from '../../../src/kube/transport/api-error.ts';
import { apiErrorOf, apiErrorOfStatus } from '../../../src/kube/transport/api-error.ts';
import { statusOf } from './support/rig.ts';

const error = (status: number, reason = '', causes: judge.StatusCause[] = []) =>
  new judge.ApiError('GET /x', { status, reason, causes });

const predicates = {
  isNotFound: judge.isNotFound,
  isAlreadyExists: judge.isAlreadyExists,
  isConflict: judge.isConflict,
  isGone: judge.isGone,
  isInvalidUid: judge.isInvalidUid,
  isForbidden: judge.isForbidden,
  isUnauthorized: judge.isUnauthorized,
  isTooManyRequests: judge.isTooManyRequests,
};

describe('predicates of ApiError', () => {
  it.each<[judge.ApiError, keyof typeof predicates]>([
    [error(404, 'NotFound'), 'isNotFound'],
    [error(409, 'AlreadyExists'), 'isAlreadyExists'],
    [error(409, 'Conflict'), 'isConflict'],
    [error(410, 'Expired'), 'isGone'],
    [error(422, 'Invalid', [{ field: 'spec.x' }, { field: 'metadata.uid' }]), 'isInvalidUid'],
    [error(403, 'Forbidden'), 'isForbidden'],
    [error(401, 'Unauthorized'), 'isUnauthorized'],
    [error(429, 'TooManyRequests'), 'isTooManyRequests'],
  ])('%s is %s and nothing else', (subject, expected) => {
    const held = Object.entries(predicates).filter(([, holds]) => holds(subject));
    expect(held.map(([name]) => name)).toEqual([expected]);
  });

  it('do not hold for another invalid field, nor for other errors', () => {
    const others = [error(422, 'Invalid', [{ field: 'spec.x' }]), new Error('404'), { status: 404 }, undefined];
    for (const other of others) {
      expect(Object.values(predicates).some((holds) => holds(other))).toBe(false);
    }
  });
});

describe('predicates of errors without an answer', () => {
  it.each([
    ['Kube.ConnectionFailed', [true, false]],
    ['Kube.NotPermitted', [false, true]],
    ['Kube.ConfigInvalid', [false, false]],
  ] as const)('hold for their code: %s', (code, held) => {
    const subject = new ControllerError(code, 'x');
    expect([judge.isConnectionFailed(subject), judge.isNotPermitted(subject)]).toEqual(held);
  });

  it('do not hold for the errors of others', () => {
    const subject = Object.assign(new Error('x'), { code: 'Kube.NotPermitted' });
    expect([judge.isConnectionFailed(subject), judge.isNotPermitted(subject)]).toEqual([false, false]);
  });
});

describe('isFieldConflict', () => {
  it.each([
    ['holds when another manager owns a field', error(409, 'Conflict', [{ reason: 'FieldManagerConflict' }]), true],
    ['does not hold for a stale version', error(409, 'Conflict'), false],
    ['does not hold for another status', error(422, 'Invalid', [{ reason: 'FieldManagerConflict' }]), false],
  ])('%s', (_text, subject, holds) => expect(judge.isFieldConflict(subject)).toBe(holds));
});

describe('isRetriable', () => {
  it.each([401, 408, 429, 500, 502, 503, 504])('holds for %d', (status) => {
    expect(judge.isRetriable(error(status))).toBe(true);
  });

  it.each([400, 403, 404, 405, 409, 410, 415, 422, 499])('does not hold for %d', (status) => {
    expect(judge.isRetriable(error(status))).toBe(false);
  });

  it('holds when no whole answer came, and for no other error', () => {
    expect(judge.isRetriable(new ControllerError('Kube.ConnectionFailed', 'cut'))).toBe(true);
    expect(judge.isRetriable(new ControllerError('Kube.ConfigInvalid', 'x'))).toBe(false);
    expect(judge.isRetriable(new Error('x'))).toBe(false);
  });
});

describe('apiErrorOf', () => {
  it('prefers the header over the body for the time to wait, and the real status code', () => {
    const body = JSON.stringify(statusOf(500, 'TooManyRequests', { retryAfterSeconds: 7 }));
    expect(apiErrorOf('GET /x', { status: 429, retryAfter: '3' }, body)).toMatchObject({
      status: 429,
      retryAfterMs: 3000,
    });
    expect(apiErrorOf('GET /x', { status: 429 }, body)).toMatchObject({ retryAfterMs: 7000 });
    expect(apiErrorOf('GET /x', { status: 429, retryAfter: 'Fri, 1 Jan' }, body)).toMatchObject({ retryAfterMs: 7000 });
    expect(apiErrorOf('GET /x', { status: 429 }, 'null').retryAfterMs).toBeUndefined();
  });

  it.each(['soon', null, {}])('has no time to wait where that is no number (%j)', (retryAfterSeconds) => {
    const body = JSON.stringify({ kind: 'Status', details: { retryAfterSeconds } });
    expect(apiErrorOf('GET /x', { status: 429 }, body).retryAfterMs).toBeUndefined();
  });

  it('cuts a long message', () => {
    expect(apiErrorOf('GET /x', { status: 502 }, 'x'.repeat(100_000)).message).toHaveLength(512);
  });

  it('takes an ERROR event without a code for a failure of the server', () => {
    expect(apiErrorOfStatus('watch /x', {})).toMatchObject({ status: 500, reason: '' });
  });
});
