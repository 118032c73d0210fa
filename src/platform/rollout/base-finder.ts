import { sharingOf } from '../../kinds/module-pod.ts';
import { completePod } from '../../kinds/pod-defaults.ts';
import { type CachedNode, isReadyNode } from '../../kinds/vnode-object.ts';
import { fitsNode, type Placement, placementOf } from '../../kube/placement.ts';
import type { Informer } from '../../kube/watch/informer-types.ts';
import type { ModuleTemplate } from './module-deployment.ts';
import { digestOf } from './revision.ts';
import type { PlannedTemplate } from './rollout-template.ts';

export interface BaseFinderOptions {
  readonly nodes: Pick<Informer<CachedNode>, 'get' | 'list'>;
  /** ENV of Pods whose template does not name one. */
  readonly env: string;
}

/** Finds the Nodes that could take Pods of a template, leaving aside what runs there. */
export class BaseFinder {
  readonly #options: BaseFinderOptions;

  constructor(options: BaseFinderOptions) {
    this.#options = options;
  }

  /** `uid`: of the ModuleDeployment. Each prefers other bases, so that the first one is not full of copies of all. */
  planned({
    hash,
    template,
    uid,
  }: {
    readonly hash: string;
    readonly template: ModuleTemplate;
    readonly uid: string;
  }): PlannedTemplate {
    const { nodes, env } = this.#options;
    const { metadata, spec } = completePod(template, env);
    const placement = placementOf(spec);
    let names: readonly string[] | undefined;
    return {
      hash,
      sharing: sharingOf(metadata, spec),
      isUsable: (name) => {
        const node = nodes.get(name);
        return node !== undefined && isUsable(placement, node);
      },
      bases: () => {
        names ??= nodes
          .list()
          .filter((node) => isUsable(placement, node))
          .map(({ name }) => ({ name, order: digestOf(`${uid}/${name}`, 8) }))
          .toSorted((a, b) => (a.order < b.order ? -1 : 1))
          .map(({ name }) => name);
        return names;
      },
    };
  }

  /** Whether the template fits a Node that is none of `taken`. */
  hasOneLeft(template: ModuleTemplate, taken: ReadonlySet<string | undefined>): boolean {
    const { nodes, env } = this.#options;
    const placement = placementOf(completePod(template, env).spec);
    return nodes.list().some((node) => !taken.has(node.name) && isUsable(placement, node));
  }
}

/** It is Ready, and its labels and taints fit. */
function isUsable(placement: Placement, node: CachedNode): boolean {
  return !node.isDeleting && isReadyNode(node) && fitsNode(placement, node);
}
