import type { ConditionStatus } from '../../kube/objects.ts';
import { shortened } from '../../shortened.ts';
import type { Arklets } from './arklets.ts';
import { backendsOf, hasTarget, type ServingPod } from './backends.ts';
import type { Conflict } from './conflicts.ts';
import type { ExportConditionType, Exported, ExportServiceCondition, ExportServiceStatus } from './export-service.ts';
import type { ExportSettings } from './exported-service.ts';

/** About 100 bytes each: an object of the API has at most 1.5 MiB. */
export const MAX_BACKENDS = 5_000;

/** What follows from a Service and its Pods alone, without other Services. */
export interface ExportView {
  readonly exported: Exported;
  /** The same as JSON, as balancers get it. */
  readonly json: string;
  readonly faults: readonly string[];
  readonly unknownWeights: readonly string[];
}

export interface ViewInput {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly settings: ExportSettings;
  readonly serving: readonly ServingPod[];
  readonly arklets: Pick<Arklets, 'isAt'>;
}

/** Equal inputs give equal text, on every replica. */
export function viewOf({ cluster, namespace, name, settings, serving, arklets }: ViewInput): ExportView {
  const faults = [...settings.faults];
  const unknownWeights = new Set<string>();
  let left = MAX_BACKENDS;
  const ports = settings.ports.map((port) => {
    const { host, path, protocol, servicePort } = port;
    const described = { name: port.name, BCSVHost: host, path, protocol, servicePort };
    const tooMany = `spec.ports[${port.name}]: more than ${MAX_BACKENDS} backends in all ports, the others are left out`;
    if (left === 0 && hasTarget(port, serving)) {
      // The backends of 64 ports on thousands of Pods would take a second, for nothing.
      faults.push(tooMany);
      return { ...described, backends: [] };
    }
    const found = backendsOf(port, serving, settings, arklets);
    for (const label of found.unknownWeights) unknownWeights.add(label);
    if (found.isOfArklet) faults.push(`spec.ports[${port.name}].targetPort: is the port of the arklet of a base`);
    const backends = found.backends.slice(0, left);
    left -= backends.length;
    if (backends.length < found.backends.length) faults.push(tooMany);
    return { ...described, backends };
  });
  const exported: Exported = {
    cluster,
    namespace,
    serviceName: name,
    serviceWeight: settings.weights,
    ports,
    BCSGroup: [...settings.groups],
    sslcert: settings.isSsl,
    balance: settings.balance,
    maxconn: settings.maxConnections,
  };
  return { exported, json: JSON.stringify(exported), faults, unknownWeights: [...unknownWeights].sort() };
}

export interface StatusInput {
  readonly view: ExportView;
  /** Conflicts by group. */
  readonly conflicts: ReadonlyMap<string, Conflict>;
  readonly generation: number;
  /** Its conditions keep the time of their last change. */
  readonly stored: ExportServiceStatus | undefined;
  /** RFC 3339. */
  readonly nowText: string;
}

const MAX_MESSAGE_LENGTH = 1024;

/** What an ExportService shows. */
export function exportStatusOf({ view, conflicts, generation, stored, nowText }: StatusInput): ExportServiceStatus {
  const { exported } = view;
  const backends = exported.ports.reduce((sum, port) => sum + port.backends.length, 0);
  const condition = (type: ExportConditionType, isTrue: boolean, reason: string, message: string) => {
    const status: ConditionStatus = isTrue ? 'True' : 'False';
    const former = stored?.conditions.find((one) => one.type === type);
    const lastTransitionTime = former?.status === status ? former.lastTransitionTime : nowText;
    return {
      type,
      status,
      reason,
      message: shortened(message, MAX_MESSAGE_LENGTH),
      lastTransitionTime,
    } satisfies ExportServiceCondition;
  };
  const lost = [...conflicts].map(([group, { winner, what }]) => `group ${group}: ${winner} has ${what}`);
  const unknown = view.unknownWeights.join(', ');
  return {
    ...exported,
    observedGeneration: generation,
    leftOutOf: [...conflicts.keys()].sort(),
    summary: {
      groups: exported.BCSGroup.join(','),
      ports: exported.ports.map(({ servicePort, protocol }) => `${servicePort}/${protocol}`).join(','),
      backends,
    },
    conditions: [
      lost.length > 0
        ? condition('Conflict', true, 'TakenByOther', lost.join('; '))
        : condition('Conflict', false, 'NoConflict', 'no other Service of its groups wants the same'),
      view.faults.length > 0
        ? condition('Invalid', true, 'InvalidService', view.faults.join('; '))
        : condition('Invalid', false, 'ValidService', 'the Service can be exported as it is'),
      readyCondition(condition, { backends, isLeftOut: lost.length > 0 && lost.length === exported.BCSGroup.length }),
      unknown === ''
        ? condition('UnknownWeight', false, 'AllWeighted', 'every backend has its share')
        : condition('UnknownWeight', true, 'NoSuchWeight', `no BCS-WEIGHT- label for ${unknown}: each has weight 1`),
    ],
  };
}

function readyCondition(
  condition: (type: ExportConditionType, isTrue: boolean, reason: string, message: string) => ExportServiceCondition,
  { backends, isLeftOut }: { readonly backends: number; readonly isLeftOut: boolean },
): ExportServiceCondition {
  if (isLeftOut) return condition('Ready', false, 'Conflict', 'no group takes it');
  if (backends === 0) return condition('Ready', false, 'NoBackends', 'no selected Pod is ready on a base');
  return condition('Ready', true, 'Exported', 'the Service is exported');
}
