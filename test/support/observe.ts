import { ApiError } from '../../samples/control-plane/api-client.ts';
import type { ControlPlane } from '../../samples/control-plane/control-plane.ts';
import type { EventObject, NodeObject, PodObject } from '../../src/kube/objects.ts';
import { leasePath, nodePath, podPath } from './world.ts';

type Admin = ControlPlane['admin'];

/** The object, or undefined when there is none. */
export async function find<T>(admin: Admin, path: string): Promise<T | undefined> {
  try {
    return (await admin.get(path)) as T;
  } catch (error) {
    if (error instanceof ApiError && error.statusCode === 404) return undefined;
    throw error;
  }
}

export const findPod = (admin: Admin, name: string) => find<PodObject>(admin, podPath(name));
export const findNode = (admin: Admin, identity: string) => find<NodeObject>(admin, nodePath(identity));
export const findLease = (admin: Admin, identity: string) => find(admin, leasePath(identity));

export async function pods(admin: Admin, selector = '', namespace = 'default'): Promise<PodObject[]> {
  const query = selector === '' ? '' : `?labelSelector=${encodeURIComponent(selector)}`;
  return (await admin.list(`/api/v1/namespaces/${namespace}/pods${query}`)) as PodObject[];
}

export async function nodes(admin: Admin, selector = ''): Promise<NodeObject[]> {
  const query = selector === '' ? '' : `?labelSelector=${encodeURIComponent(selector)}`;
  return (await admin.list(`/api/v1/nodes${query}`)) as NodeObject[];
}

export function isReady(object: NodeObject | PodObject | undefined): boolean {
  return conditionOf(object, 'Ready')?.status === 'True';
}

export function conditionOf(object: NodeObject | PodObject | undefined, type: string) {
  return object?.status?.conditions?.find((condition) => condition.type === type);
}

/** Ready, and the scheduler may use it: the API server's own taint is gone. */
export function isSchedulable(node: NodeObject): boolean {
  return isReady(node) && !(node.spec?.taints ?? []).some(({ key }) => key.startsWith('node.kubernetes.io/'));
}

export function waitingReason(pod: PodObject | undefined, index = 0): string | undefined {
  return pod?.status?.containerStatuses?.[index]?.state?.waiting?.reason;
}

/** The API server writes `262144Ki` as `256Mi`; NaN where there is no amount. */
export function kibOf(quantity: string | null | undefined): number {
  const [, digits = '', unit = ''] = /^(\d+)(Ki|Mi|Gi)$/.exec(quantity ?? '') ?? [];
  return Number(digits) * ({ Ki: 1, Mi: 1024, Gi: 1024 ** 2 }[unit] ?? Number.NaN);
}

/** `Type Reason` of the events about an object. */
export async function eventsOf(
  admin: Admin,
  kind: 'Deployment' | 'Module' | 'ModuleDeployment' | 'ModuleRelease' | 'Node' | 'Pod' | 'ReplicaSet',
  name: string,
): Promise<EventObject[]> {
  const query = encodeURIComponent(`involvedObject.kind=${kind},involvedObject.name=${name}`);
  return (await admin.list(`/api/v1/events?fieldSelector=${query}`)) as EventObject[];
}

/** `pod address` of the endpoints of a Service that are ready, sorted. */
export async function endpointsOf(admin: Admin, service: string): Promise<string[]> {
  const query = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const path = `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=${query}`;
  const endpoints = ((await admin.list(path)) as EndpointSlice[]).flatMap((slice) => slice.endpoints ?? []);
  return endpoints
    .filter(({ conditions }) => conditions.ready)
    .flatMap(({ targetRef, addresses }) => addresses.map((address) => `${targetRef.name} ${address}`))
    .sort();
}

interface EndpointSlice {
  readonly endpoints?: {
    readonly addresses: string[];
    readonly conditions: { readonly ready: boolean };
    readonly targetRef: { readonly name: string };
  }[];
}
