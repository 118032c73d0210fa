import type { KubeObject } from '../../kube/objects.ts';
import type { JsonPatchOperation } from '../../kube/resource.ts';
import type { AdmissionRequest, Verdict } from '../../reconcile/webhooks.ts';
import { shortened } from '../../shortened.ts';

/** `admission.k8s.io/v1`: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ */
const API_VERSION = 'admission.k8s.io/v1';

/** One question of the API server. */
export interface Review {
  readonly uid: string;
  readonly operation: string;
  /** API version of the resource that the webhook is registered for, such as `apps/v1`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly request: AdmissionRequest;
}

/** Throws RangeError, with the field in its message, for what is no AdmissionReview. */
export function reviewOf(body: unknown): Review {
  const { apiVersion, kind, request } = recordOf(body, 'the body');
  if (apiVersion !== API_VERSION || kind !== 'AdmissionReview')
    throw new RangeError(`apiVersion and kind must be ${API_VERSION} AdmissionReview`);
  const { uid, operation, resource, namespace = '', object, oldObject } = recordOf(request, 'request');
  const { group = '', version, resource: plural } = recordOf(resource, 'request.resource');
  return {
    uid: textOf(uid, 'request.uid'),
    operation: textOf(operation, 'request.operation'),
    apiVersion: [textOf(group, 'request.resource.group'), textOf(version, 'request.resource.version')]
      .filter((part) => part !== '')
      .join('/'),
    plural: textOf(plural, 'request.resource.resource'),
    request: {
      operation: operation === 'UPDATE' ? 'UPDATE' : 'CREATE',
      namespace: textOf(namespace, 'request.namespace'),
      object: objectOf(object, 'request.object'),
      oldObject: oldObject ? objectOf(oldObject, 'request.oldObject') : undefined,
    },
  };
}

/** The answer for `review`: what changed goes as a JSON patch. */
export function answerTo({ uid, request }: Review, verdict: Verdict): unknown {
  return { apiVersion: API_VERSION, kind: 'AdmissionReview', response: { uid, ...responseOf(request, verdict) } };
}

function responseOf({ object }: AdmissionRequest, verdict: Verdict): object {
  if (!verdict.isAllowed) return { allowed: false, status: { code: 422, reason: 'Invalid', message: verdict.message } };
  const patch = jsonPatchOf(object, verdict.object ?? object);
  return {
    allowed: true,
    ...(verdict.warnings &&
      verdict.warnings.length > 0 && { warnings: verdict.warnings.map((one) => shortened(one, MAX_WARNING_LENGTH)) }),
    ...(patch.length > 0 && {
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    }),
  };
}

/** The API server cuts off what is longer than 256 characters. */
const MAX_WARNING_LENGTH = 256;

/** RFC 6902: what makes `after` of `before`. A list of another length is replaced as a whole. */
export function jsonPatchOf(before: unknown, after: unknown, path = ''): JsonPatchOperation[] {
  if (before === after) return [];
  const [olds, news] = [childrenOf(before), childrenOf(after)];
  const isSameShape = Array.isArray(before) === Array.isArray(after);
  if (olds === undefined || news === undefined || !isSameShape || (Array.isArray(after) && olds.size !== news.size))
    return [{ op: 'replace', path, value: after }];
  const gone = [...olds.keys()].filter((key) => !news.has(key));
  return [
    ...gone.map((key) => ({ op: 'remove' as const, path: `${path}/${escaped(key)}` })),
    ...[...news].flatMap(([key, value]): JsonPatchOperation[] => {
      const child = `${path}/${escaped(key)}`;
      return olds.has(key) ? jsonPatchOf(olds.get(key), value, child) : [{ op: 'add', path: child, value }];
    }),
  ];
}

/** Children of a list or an object; a field that is undefined is none. Undefined for any other value. */
function childrenOf(value: unknown): Map<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return new Map(Object.entries(value).filter(([, child]) => child !== undefined));
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function recordOf(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RangeError(`${field} must be an object`);
  return value as Record<string, unknown>;
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new RangeError(`${field} must be a string`);
  return value;
}

function objectOf(value: unknown, field: string): KubeObject {
  const object = recordOf(value, field);
  recordOf(object.metadata, `${field}.metadata`);
  return object as unknown as KubeObject;
}
