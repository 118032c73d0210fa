/** Kubernetes objects of the tests, in the shape that users write them in. */
export interface ModuleOptions {
  readonly name: string;
  readonly version?: string;
  readonly image?: string;
  readonly args?: readonly string[];
}

export interface PodOptions {
  readonly env?: string;
  readonly nodeName?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
  /** What every container has besides. */
  readonly container?: Readonly<Record<string, unknown>>;
}

export function jarOf(name: string, version: string): string {
  return `https://jars.example.com/${name}-${version}-ark-biz.jar`;
}

function containerOf({ name, version = '1.0.0', image, args }: ModuleOptions) {
  const env = [{ name: 'BIZ_VERSION', value: version }];
  return { name, image: image ?? jarOf(name, version), env, ...(args ? { args } : {}) };
}

export function podSpec(
  modules: readonly ModuleOptions[],
  { env = 'dev', nodeName, spec, container }: PodOptions = {},
) {
  return {
    containers: modules.map((module) => ({ ...containerOf(module), ...container })),
    tolerations: [
      { key: 'schedule.koupleless.io/virtual-node', operator: 'Equal', value: 'True', effect: 'NoExecute' },
      { key: 'schedule.koupleless.io/node-env', operator: 'Equal', value: env, effect: 'NoExecute' },
    ],
    nodeSelector: { 'virtual-kubelet.koupleless.io/env': env },
    ...(nodeName ? { nodeName } : {}),
    ...spec,
  };
}

export function modulePod(name: string, modules: readonly ModuleOptions[], options: PodOptions = {}) {
  const labels = { 'virtual-kubelet.koupleless.io/component': 'module', ...options.labels };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels, ...(options.annotations && { annotations: options.annotations }) },
    spec: podSpec(modules, options),
  };
}

export interface WorkloadOptions extends PodOptions {
  readonly replicas?: number;
  readonly kind?: 'Deployment' | 'DaemonSet' | 'StatefulSet';
  /** Of a Deployment. */
  readonly rollingUpdate?: { readonly maxSurge: number; readonly maxUnavailable: number };
}

/** One copy of a version per base, as the samples have it. */
export function moduleWorkload(name: string, modules: readonly ModuleOptions[], options: WorkloadOptions = {}) {
  const { kind = 'Deployment', replicas = 1, annotations, rollingUpdate } = options;
  const version = modules[0]?.version ?? '1.0.0';
  const labels = {
    app: name,
    version,
    'virtual-kubelet.koupleless.io/component': 'module',
    ...options.labels,
  };
  const podAntiAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: name, version } } },
    ],
  };
  const isSpread = kind !== 'DaemonSet';
  const spec = { ...(isSpread ? { affinity: { podAntiAffinity } } : {}), ...podSpec(modules, options) };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace: 'default' },
    spec: {
      ...(isSpread ? { replicas } : {}),
      ...(kind === 'StatefulSet' ? { serviceName: name } : {}),
      selector: { matchLabels: { app: name } },
      ...(rollingUpdate && { strategy: { type: 'RollingUpdate', rollingUpdate } }),
      template: { metadata: { labels, ...(annotations && { annotations }) }, spec },
    },
  };
}
