import { completePlacement, completePod, type PodTemplate } from '../../kinds/pod-defaults.ts';
import { envsBesideTolerations } from '../../kinds/pod-env.ts';
import type { KubeObject, NodeSelectorTerm, PodObject } from '../../kube/objects.ts';
import { DEPLOYMENTS, PODS, type ResourceKind } from '../../kube/resource.ts';
import {
  ANNOTATION,
  COMPONENT,
  COMPONENT_LABEL,
  PEER_STRATEGY,
  STRATEGY_LABEL,
  TAINT,
  VNODE_LABEL,
} from '../../labels.ts';
import type { AdmissionRequest, Verdict, WebhookRegistry, WebhookRule } from '../../reconcile/webhooks.ts';

/** A Deployment or DaemonSet, as far as it decides where its Pods may run. */
export interface Workload extends KubeObject {
  readonly spec: { readonly template: PodTemplate };
}

const DAEMON_SETS: ResourceKind = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  isNamespaced: true,
};

const OF_PODS: WebhookRule = {
  name: PODS.plural,
  path: 'mutate',
  kind: PODS,
  operations: ['CREATE'],
  failurePolicy: 'Ignore',
  labels: { [COMPONENT_LABEL]: COMPONENT.module },
  use: 'Other Pods never come here. While the platform is away, complete Pods of modules start without it.',
};

const OF_DAEMON_SETS: WebhookRule = {
  name: DAEMON_SETS.plural,
  path: 'mutate',
  kind: DAEMON_SETS,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Ignore',
  labels: { [COMPONENT_LABEL]: COMPONENT.moduleDeployment },
  use: 'The controller of DaemonSets decides by the template which Nodes get a Pod.',
};

const OF_PEER_DEPLOYMENTS: WebhookRule = {
  name: 'peer-deployments',
  path: 'mutate',
  kind: DEPLOYMENTS,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Ignore',
  labels: { [STRATEGY_LABEL]: PEER_STRATEGY },
  use: 'The number of Pods of a peer deployment follows from the bases that its template fits.',
};

export const POD_WEBHOOKS: readonly WebhookRule[] = [OF_PODS, OF_DAEMON_SETS, OF_PEER_DEPLOYMENTS];

/**
 * Completes Pods of modules. Of DaemonSets and peer deployments it completes the template too, as far as it decides
 * which Nodes get a Pod: their controllers decide that before there is a Pod. `env`: of Pods that name none.
 */
export function registerPodWebhooks(webhooks: WebhookRegistry, env: string): void {
  webhooks.register<PodObject>(OF_PODS, ({ object }) => completedPod(object, env));
  for (const rule of [OF_DAEMON_SETS, OF_PEER_DEPLOYMENTS])
    webhooks.register<Workload>(rule, (request) => completedTemplate(request, env));
}

function completedPod(pod: PodObject, env: string): Verdict<PodObject> {
  return isOfModules(pod) ? { isAllowed: true, object: completePod(pod, env) } : { isAllowed: true };
}

function completedTemplate({ object, oldObject }: AdmissionRequest<Workload>, env: string): Verdict<Workload> {
  const { template } = object.spec;
  // Then only finalizers go. A completed template would be a changed one, and be judged.
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  if (isDeleting || !isOfModules(template)) return { isAllowed: true };
  const former = oldObject?.spec.template;
  const followed =
    former === undefined ? template : withoutFormerEnvs(withoutFormerBases(template, former), former, env);
  return {
    isAllowed: true,
    object: { ...object, spec: { ...object.spec, template: completePlacement(followed, env) } },
  };
}

function isOfModules({ metadata }: Pick<PodTemplate, 'metadata'>): boolean {
  return metadata?.labels?.[COMPONENT_LABEL] === COMPONENT.module;
}

/** A template that names another ENV than before: the toleration that the former one was completed with goes. */
function withoutFormerEnvs<T extends PodTemplate>(template: T, former: PodTemplate, env: string): T {
  const [now, before] = [template, former].map((one) => envsBesideTolerations(one) ?? [env]);
  const gone = before?.filter((one) => !now?.includes(one)) ?? [];
  const { tolerations = [] } = template.spec;
  const kept = tolerations.filter(
    ({ key, operator, value = '', effect }) =>
      !(key === TAINT.env && operator === 'Equal' && effect === 'NoExecute' && gone.includes(value)),
  );
  return kept.length === tolerations.length ? template : { ...template, spec: { ...template.spec, tolerations: kept } };
}

const BASE_ANNOTATIONS = [
  [ANNOTATION.baseName, VNODE_LABEL.name],
  [ANNOTATION.baseVersion, VNODE_LABEL.version],
] as const;

/** An annotation that has changed: what it was completed to is in the template still, and goes. */
function withoutFormerBases<T extends PodTemplate>(template: T, former: PodTemplate): T {
  const gone = BASE_ANNOTATIONS.flatMap(([annotation, key]) => {
    const value = former.metadata?.annotations?.[annotation];
    return value === undefined || value === template.metadata.annotations?.[annotation] ? [] : [{ key, value }];
  });
  const { affinity } = template.spec;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (gone.length === 0 || required === undefined) return template;
  const isFormer = ({ key, operator, values = [] }: { key: string; operator: string; values?: string[] }): boolean =>
    gone.some((one) => key === one.key && operator === 'In' && values.length === 1 && values[0] === one.value);
  const nodeSelectorTerms = (required.nodeSelectorTerms ?? []).map(({ matchExpressions = [], ...term }) => ({
    ...term,
    matchExpressions: matchExpressions.filter((expression) => !isFormer(expression)),
  }));
  const isEmpty = nodeSelectorTerms.every(
    ({ matchExpressions, matchFields = [] }: NodeSelectorTerm) =>
      (matchExpressions ?? []).length + matchFields.length === 0,
  );
  const { requiredDuringSchedulingIgnoredDuringExecution: _, ...nodeAffinity } = affinity?.nodeAffinity ?? {};
  return {
    ...template,
    spec: {
      ...template.spec,
      affinity: {
        ...affinity,
        nodeAffinity: isEmpty
          ? nodeAffinity
          : { ...nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: { ...required, nodeSelectorTerms } },
      },
    },
  };
}
