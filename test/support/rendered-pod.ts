import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import type { ControlPlaneAccess } from '../../samples/control-plane/control-plane-access.ts';

type Env = Record<string, string>;

/** The variables that a kubelet would give the container of a Pod. `status`: what it would know of the Pod. */
export async function envOfPod(
  { admin }: Pick<ControlPlaneAccess, 'admin'>,
  pod: KubeObject,
  status: KubeObject,
): Promise<Env> {
  const { namespace } = pod.metadata;
  const [{ envFrom = [], env = [] }] = pod.spec.containers;
  const dataOf = async (plural: string, { name, optional }: KubeObject): Promise<Env> => {
    const object = await admin.get(`/api/v1/namespaces/${namespace}/${plural}/${name}`).catch((error: unknown) => {
      if (optional === true) return { data: {} };
      throw error;
    });
    const texts = Object.entries<string>(object.data ?? {});
    if (plural === 'configmaps') return Object.fromEntries(texts);
    return Object.fromEntries(texts.map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]));
  };
  const all: Env = {};
  for (const { configMapRef, secretRef } of envFrom) {
    Object.assign(all, configMapRef ? await dataOf('configmaps', configMapRef) : await dataOf('secrets', secretRef));
  }
  for (const { name, value = '', valueFrom } of env) {
    if (valueFrom === undefined) all[name] = value;
    else if (valueFrom.configMapKeyRef)
      all[name] = textOf((await dataOf('configmaps', valueFrom.configMapKeyRef))[valueFrom.configMapKeyRef.key], name);
    else all[name] = textOf(fieldOf({ ...pod, status }, valueFrom.fieldRef.fieldPath), name);
  }
  return all;
}

function fieldOf(object: KubeObject, path: string): unknown {
  return path.split('.').reduce((at, key) => at?.[key], object);
}

/** A kubelet starts no container whose variables it does not find. */
function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new Error(`${name}: the Pod does not say it`);
  return value;
}

/** Where a kubelet would ask, on this machine. */
export function probeUrl(pod: KubeObject, probe: 'livenessProbe' | 'readinessProbe'): string {
  const { path, port } = pod.spec.containers[0][probe].httpGet;
  return `http://127.0.0.1:${portOf(pod, port)}${path}`;
}

/** The number of a named port. */
export function portOf(pod: KubeObject, name: string): number {
  const found = pod.spec.containers[0].ports.find((port: KubeObject) => port.name === name);
  if (found === undefined) throw new Error(`the container has no port ${name}`);
  return found.containerPort;
}
