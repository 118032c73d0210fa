import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { MODULE_DEPLOYMENTS } from '../../../src/kinds/workload-kinds.ts';
import { apiVersionOf, collectionPathOf } from '../../../src/kube/resource.ts';
import { MODULES } from '../../../src/platform/catalog/module/module.ts';
import { jarOf } from '../../support/manifests.ts';

export const NAMESPACES = 20;
const APP = 'Shop';
const RELEASE = 'r1';

/** Paths in all namespaces. */
export const PATHS = {
  modules: collectionPathOf(MODULES),
  workloads: collectionPathOf(MODULE_DEPLOYMENTS),
} as const;

export interface BenchModule {
  readonly index: number;
  readonly namespace: string;
  /** Name of the Module and of its workload. */
  readonly name: string;
}

export function namespaceOf(number: number): string {
  return `team-${number}`;
}

/**
 * Half of all Modules share one namespace, and the others are spread over the other namespaces: what costs more in a
 * namespace with many Modules, and what costs more with many namespaces, both count.
 */
export function modulesOf(count: number): BenchModule[] {
  const deep = Math.ceil(count / 2);
  return Array.from({ length: count }, (_, index) => {
    const namespace = namespaceOf(index < deep ? 0 : 1 + ((index - deep) % (NAMESPACES - 1)));
    return { index, namespace, name: `${APP.toLowerCase()}-${moduleNameOf(index)}` };
  });
}

/** A Module with one Pod, one port, and a release with its jar. */
export function moduleObject({ index, namespace, name }: BenchModule): KubeObject {
  const module = moduleNameOf(index);
  return {
    apiVersion: apiVersionOf(MODULES),
    kind: MODULES.kind,
    metadata: { name, namespace },
    spec: {
      app: APP,
      module,
      base: { name: 'base' },
      ports: [{ name: 'http', port: 8080 }],
      // A value from the start: each change later is that of a value, and adds no field.
      deploy: { replicas: 1, ...changeOf(1).spec.deploy },
      release: { id: RELEASE, image: jarOf(module, '1.0.0') },
    },
  };
}

/**
 * A change of a Module. The workload gets the value as it is, and its Pod template stays, so no Pod is touched. Any
 * number fits, so each change has one of its own.
 */
export function changeOf(number: number) {
  return { spec: { deploy: { strategy: { rollingUpdate: { maxSurge: number } } } } };
}

export function modulePath({ namespace, name }: BenchModule): string {
  return `${collectionPathOf(MODULES, namespace)}/${name}`;
}

function moduleNameOf(index: number): string {
  return `module-${index}`;
}
