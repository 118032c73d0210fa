import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonPatchOperation } from '../../../../src/kube/resource.ts';
import { answerTo, jsonPatchOf, reviewOf } from '../../../../src/platform/admission/review.ts';

const REQUEST = {
  uid: 'u',
  operation: 'UPDATE',
  resource: { group: 'apps', version: 'v1', resource: 'daemonsets' },
  namespace: 'default',
  object: { metadata: { name: 'new' } },
  oldObject: { metadata: { name: 'old' } },
};

function body(request: unknown = REQUEST) {
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
}

/** RFC 6902, as far as `jsonPatchOf` uses it. */
function applied(document: unknown, patch: readonly JsonPatchOperation[]): unknown {
  const root = { '': structuredClone(document) } as Record<string, unknown>;
  for (const operation of patch) {
    const keys = operation.path.split('/').map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = keys.pop() ?? '';
    const parent = keys.reduce<Record<string, unknown>>((at, key) => at[key] as Record<string, unknown>, root);
    if (operation.op === 'remove') delete parent[last];
    else
      Object.defineProperty(parent, last, {
        value: operation.value,
        configurable: true,
        enumerable: true,
        writable: true,
      });
  }
  return root[''];
}

describe('an AdmissionReview', () => {
  it('is read with the group and version of its resource', () => {
    const review = reviewOf(body());
    expect([review.operation, review.apiVersion, review.plural]).toEqual(['UPDATE', 'apps/v1', 'daemonsets']);
    expect(review.request).toMatchObject({ operation: 'UPDATE', namespace: 'default', oldObject: REQUEST.oldObject });
    const core = {
      ...REQUEST,
      operation: 'CREATE',
      oldObject: null,
      resource: { group: '', version: 'v1', resource: 'pods' },
    };
    expect(reviewOf(body(core))).toMatchObject({
      apiVersion: 'v1',
      request: { operation: 'CREATE', oldObject: undefined },
    });
  });

  it.each([
    ['the body', null],
    ['apiVersion', { ...body(), apiVersion: 'admission.k8s.io/v1beta1' }],
    ['apiVersion', { ...body(), kind: 'Pod' }],
    ['request', { ...body(), request: undefined }],
    ['request.uid', body({ ...REQUEST, uid: 1 })],
    ['request.operation', body({ ...REQUEST, operation: undefined })],
    ['request.resource', body({ ...REQUEST, resource: [] })],
    ['request.resource.resource', body({ ...REQUEST, resource: { version: 'v1' } })],
    ['request.object', body({ ...REQUEST, object: null })],
    ['request.object.metadata', body({ ...REQUEST, object: {} })],
    ['request.oldObject.metadata', body({ ...REQUEST, oldObject: {} })],
  ])('is refused with the name of the field: %s', (field, wrong) => {
    expect(() => reviewOf(wrong)).toThrow(field);
  });

  it('is answered with its uid, and with what changed', () => {
    const review = reviewOf(body());
    expect(answerTo(review, { isAllowed: true })).toMatchObject({ response: { uid: 'u', allowed: true } });
    expect(answerTo(review, { isAllowed: true, object: review.request.object })).toEqual(
      answerTo(review, { isAllowed: true, warnings: [] }),
    );
    // Nothing has changed: there is no patch.
    expect(answerTo(review, { isAllowed: true })).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u', allowed: true },
    });
    const changed = answerTo(review, { isAllowed: true, object: { metadata: { name: 'other' } } }) as {
      response: { patchType: string; patch: string };
    };
    expect(changed.response.patchType).toBe('JSONPatch');
    expect(JSON.parse(Buffer.from(changed.response.patch, 'base64').toString())).toEqual([
      { op: 'replace', path: '/metadata/name', value: 'other' },
    ]);
    expect(answerTo(review, { isAllowed: false, message: 'no' })).toMatchObject({
      response: { uid: 'u', allowed: false, status: { code: 422, message: 'no' } },
    });
  });

  it('is answered with warnings that the API server does not cut', () => {
    const answer = answerTo(reviewOf(body()), { isAllowed: true, warnings: ['x'.repeat(256), 'x'.repeat(257)] });
    const { warnings } = (answer as { response: { warnings: string[] } }).response;
    expect(warnings).toEqual(['x'.repeat(256), `${'x'.repeat(255)}…`]);
  });
});

describe('a JSON patch', () => {
  it('makes the one of the other', () => {
    const key = fc.constantFrom('a', 'b~1', 'c/d', '~', '');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.integer({ max: 2 }),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(value, value, (before, after) => {
        const patch = jsonPatchOf(before, after);
        expect(applied(before, patch)).toEqual(after);
        expect(jsonPatchOf(after, structuredClone(after))).toEqual([]);
      }),
    );
  });

  it('leaves out what is undefined', () => {
    expect(jsonPatchOf({ a: 1 }, { a: 1, b: undefined })).toEqual([]);
    expect(jsonPatchOf({ a: 1 }, { a: undefined })).toEqual([{ op: 'remove', path: '/a' }]);
  });
});
