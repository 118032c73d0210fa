import { COMPONENT, COMPONENT_LABEL } from '../../src/labels.ts';
import type { ApiClient } from '../control-plane/api-client.ts';
import { Mirror } from '../control-plane/mirror.ts';
import {
  type ClusterView,
  type DeploymentView,
  deploymentViewOf,
  type ModuleDeploymentView,
  moduleDeploymentViewOf,
  type NodeView,
  nodeViewOf,
  type PodView,
  podViewOf,
} from './view.ts';

export const MODULE_DEPLOYMENTS_PATH = '/apis/platform.koupleless.io/v1alpha1/namespaces/default/moduledeployments';

/** Nodes, vPods, Deployments and ModuleDeployments as the API server shows them, by a watch each. */
export class Watcher {
  readonly #nodes: Mirror<NodeView>;
  readonly #pods: Mirror<PodView>;
  readonly #deployments: Mirror<DeploymentView>;
  readonly #moduleDeployments: Mirror<ModuleDeploymentView>;

  constructor(client: ApiClient, onChange: () => void) {
    const selected = (component: string) => `labelSelector=${encodeURIComponent(`${COMPONENT_LABEL}=${component}`)}`;
    const nodes = `/api/v1/nodes?${selected(COMPONENT.vnode)}`;
    const pods = `/api/v1/pods?${selected(COMPONENT.module)}`;
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    this.#nodes = new Mirror({ client, path: nodes, viewOf: nodeViewOf, onChange });
    this.#pods = new Mirror({ client, path: pods, viewOf: podViewOf, onChange });
    this.#deployments = new Mirror({ client, path: deployments, viewOf: deploymentViewOf, onChange });
    this.#moduleDeployments = new Mirror({
      client,
      path: MODULE_DEPLOYMENTS_PATH,
      viewOf: moduleDeploymentViewOf,
      onChange,
    });
  }

  view(): ClusterView {
    return {
      nodes: this.#nodes.rows(),
      pods: this.#pods.rows(),
      deployments: this.#deployments.rows(),
      moduleDeployments: this.#moduleDeployments.rows(),
    };
  }

  /** Resolves when all that exist in every cluster have been listed. */
  async start(): Promise<void> {
    await Promise.all([this.#nodes, this.#pods, this.#deployments].map((mirror) => mirror.start()));
  }

  /** For a cluster with their CRD. */
  async startModuleDeployments(): Promise<void> {
    await this.#moduleDeployments.start();
  }

  async stop(): Promise<void> {
    const all = [this.#nodes, this.#pods, this.#deployments, this.#moduleDeployments];
    await Promise.all(all.map((mirror) => mirror.stop()));
  }
}
