import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { ANNOTATION, COMPONENT, COMPONENT_LABEL, ENV_LABEL, MODULE_LABEL, nodeNameOf } from '../../../src/labels.ts';
import { modulePod } from '../../support/manifests.ts';

/** The group of balancers that takes all Services. */
export const GROUP = 'bench';
/** Of each Service. */
export const BACKENDS = 20;
/** While Pods are replaced one by one, no two of a Service are on one base. */
export const MIN_BASES = 2 * BACKENDS;
export const NAMESPACES = 20;
/** Of the Pods of a Service; the others have the old version. */
const CANARIES = 2;
export const VERSIONS = { old: '1.0.0', canary: '2.0.0' } as const;

export interface BenchService {
  readonly index: number;
  readonly namespace: string;
  readonly name: string;
  /** As in the table of the controller. */
  readonly key: string;
}

export function namespaceOf(number: number): string {
  return `team-${number}`;
}

/**
 * Half of all Services share one namespace, and the others are spread over the other namespaces: what costs more in a
 * namespace with many Services, and what costs more with many namespaces, both count.
 */
export function servicesOf(count: number): BenchService[] {
  const deep = Math.ceil(count / 2);
  return Array.from({ length: count }, (_, index) => {
    const namespace = namespaceOf(index < deep ? 0 : 1 + ((index - deep) % (NAMESPACES - 1)));
    const name = `shop-${index}`;
    return { index, namespace, name, key: `${namespace}/${name}` };
  });
}

export function serviceObject({ namespace, name }: BenchService): KubeObject {
  const ports = JSON.stringify({ http: { domainName: `${name}.${namespace}.example.com` } });
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace,
      labels: { BCSGROUP: GROUP },
      annotations: { 'platform.koupleless.io/export-ports': ports },
    },
    spec: {
      selector: { app: name },
      ports: [{ name: 'http', port: 80, targetPort: 8080, appProtocol: 'http' }],
    },
  };
}

/** One Pod of a Service, on a base. */
export interface BenchPod {
  readonly name: string;
  readonly base: number;
  readonly ip: string;
  readonly version: string;
}

/** `place`: from 0 to BACKENDS - 1; `turn`: how often the Pod there was replaced. */
export function podOf({ index, name }: BenchService, place: number, turn: number, bases: number): BenchPod {
  const base = (index * BACKENDS + place + turn * BACKENDS) % bases;
  const version = place < BACKENDS - CANARIES ? VERSIONS.old : VERSIONS.canary;
  return { name: `${name}-${place}-${turn}`, base, ip: ipOf(base), version };
}

function ipOf(base: number): string {
  return `10.1.${base >> 8}.${base & 255}`;
}

export function podObject(service: BenchService, pod: BenchPod, env: string): KubeObject {
  const labels = { app: service.name, [MODULE_LABEL.name]: service.name, [MODULE_LABEL.version]: pod.version };
  const module = { name: service.name, version: pod.version };
  const object = modulePod(pod.name, [module], { env, nodeName: nodeOf(pod.base), labels });
  return { ...object, metadata: { ...object.metadata, namespace: service.namespace } };
}

export function podStatus({ ip }: BenchPod, isReady: boolean) {
  const status = isReady ? 'True' : 'False';
  return {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: ['Ready', 'ContainersReady'].map((type) => ({ type, status })),
  };
}

function nodeOf(base: number): string {
  return nodeNameOf(`base-${base}`);
}

export function nodeObject(base: number, env: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeOf(base),
      labels: { [COMPONENT_LABEL]: COMPONENT.vnode, [ENV_LABEL]: env },
      annotations: { [ANNOTATION.arkletPort]: '1238' },
    },
  };
}

export function nodeStatus(base: number) {
  return {
    addresses: [{ type: 'InternalIP', address: ipOf(base) }],
    conditions: [{ type: 'Ready', status: 'True' }],
  };
}
