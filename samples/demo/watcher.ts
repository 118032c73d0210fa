import { COMPONENT, COMPONENT_LABEL } from '../../src/labels.ts';
import type { ApiClient } from '../control-plane/api-client.ts';
import { Mirror } from '../control-plane/mirror.ts';
import {
  type ClusterView,
  type DeploymentView,
  deploymentViewOf,
  type NodeView,
  nodeViewOf,
  type PodView,
  podViewOf,
} from './view.ts';

/** Nodes, vPods and Deployments as the API server shows them, by three watches. */
export class Watcher {
  readonly #nodes: Mirror<NodeView>;
  readonly #pods: Mirror<PodView>;
  readonly #deployments: Mirror<DeploymentView>;

  constructor(client: ApiClient, onChange: () => void) {
    const selected = (component: string) => `labelSelector=${encodeURIComponent(`${COMPONENT_LABEL}=${component}`)}`;
    const nodes = `/api/v1/nodes?${selected(COMPONENT.vnode)}`;
    const pods = `/api/v1/pods?${selected(COMPONENT.module)}`;
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    this.#nodes = new Mirror({ client, path: nodes, viewOf: nodeViewOf, onChange });
    this.#pods = new Mirror({ client, path: pods, viewOf: podViewOf, onChange });
    this.#deployments = new Mirror({ client, path: deployments, viewOf: deploymentViewOf, onChange });
  }

  view(): ClusterView {
    return { nodes: this.#nodes.rows(), pods: this.#pods.rows(), deployments: this.#deployments.rows() };
  }

  /** Resolves when all three have been listed. */
  async start(): Promise<void> {
    await Promise.all(this.#all().map((mirror) => mirror.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all().map((mirror) => mirror.stop()));
  }

  #all(): Pick<Mirror<unknown>, 'start' | 'stop'>[] {
    return [this.#nodes, this.#pods, this.#deployments];
  }
}
