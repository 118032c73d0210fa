import type { Container, PodObject } from '../kube/objects.ts';
import type { Placement } from '../kube/placement.ts';
import { VERSION_ENV } from '../labels.ts';

type PodSpec = PodObject['spec'];

/**
 * Every replica keeps all Pods of modules in memory, and etcd takes 1.5 MiB for one. Of a larger Pod nothing is
 * installed.
 */
export const MAX_SPEC_BYTES = 64 * 1024;
export const MAX_CONTAINERS = 300;
/** An entry of a list takes memory, however short its text is. */
const ENTRY_BYTES = 32;
export const MAX_VERSION_LENGTH = 128;

export interface BoundedSpec {
  readonly spec: PodSpec;
  /** Why nothing of the Pod is installed; undefined for a spec that is kept as it is. */
  readonly fault: string | undefined;
}

/**
 * The spec. One that is too large is reduced to names, images and versions of its modules: a module that an earlier
 * version of the controller installed stays the Pod's.
 */
export function boundedSpec(spec: PodSpec): BoundedSpec {
  const first = spec.containers.slice(0, MAX_CONTAINERS);
  const bytes = bytesOf(first, spec.readinessGates);
  const fault = faultOf(spec, bytes);
  if (fault === undefined) return { spec, fault };
  const keepsImages = bytes.images <= MAX_SPEC_BYTES;
  const containers = first.map((container) => ({
    ...container,
    image: keepsImages ? (container.image ?? '') : '',
    // Never sent. It makes the module another one than a module without args.
    args: [fault],
    env: versionIn(container),
  }));
  // No condition has such a type, so the Pod is not Ready.
  const unread = [{ conditionType: 'too many readiness gates' }];
  const gates = bytes.readinessGates <= MAX_SPEC_BYTES ? (spec.readinessGates ?? []) : unread;
  return { spec: { ...spec, containers, readinessGates: gates }, fault };
}

/** A placement that is not kept matches no Node. */
export const TOO_LARGE_PLACEMENT: Placement = { nodeSelector: undefined, terms: [], tolerations: [] };

export function boundedPlacement(placement: Placement): Placement {
  return JSON.stringify(placement).length > MAX_SPEC_BYTES ? TOO_LARGE_PLACEMENT : placement;
}

/** The bytes of each field, of the containers together. */
interface SpecBytes {
  readonly images: number;
  readonly args: number;
  readonly env: number;
  readonly readinessGates: number;
}

function bytesOf(containers: readonly Container[], readinessGates: PodSpec['readinessGates'] = []): SpecBytes {
  let [images, args, env, gates] = [0, 0, 0, 0];
  for (const container of containers) {
    images += Buffer.byteLength(container.image ?? '');
    for (const text of container.args ?? []) args += ENTRY_BYTES + Buffer.byteLength(text);
    for (const { name, value = '' } of container.env ?? []) {
      env += ENTRY_BYTES + Buffer.byteLength(name) + Buffer.byteLength(value);
    }
  }
  for (const { conditionType } of readinessGates) gates += ENTRY_BYTES + Buffer.byteLength(conditionType);
  return { images, args, env, readinessGates: gates };
}

function faultOf({ containers }: PodSpec, { images, args, env, readinessGates }: SpecBytes): string | undefined {
  if (containers.length > MAX_CONTAINERS) {
    return `the Pod has ${containers.length} containers, at most ${MAX_CONTAINERS} are allowed`;
  }
  const total = images + args + env + readinessGates;
  if (total <= MAX_SPEC_BYTES) return undefined;
  const fields = { args, env, image: images, readinessGates };
  const [largest] = Object.entries(fields).reduce((one, other) => (other[1] > one[1] ? other : one));
  return `args, env, image and readinessGates of the Pod take ${total} bytes, most of them ${largest}: at most ${MAX_SPEC_BYTES} are allowed`;
}

function versionIn({ env = [] }: Container): { name: string; value: string }[] {
  const version = env.findLast(({ name }) => name === VERSION_ENV)?.value ?? '';
  return version.length > MAX_VERSION_LENGTH ? [] : [{ name: VERSION_ENV, value: version }];
}
