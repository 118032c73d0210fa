import type { ModulePod } from '../../kinds/module-pod.ts';
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
  /** What its author may not expect, in sentences. */
  readonly notes: readonly string[];
  /** Why there is no backend at all. */
  readonly lack: Lack | undefined;
  /** Shares that could not be kept, by port. */
  readonly rounded: readonly string[];
}

type Lack = 'NoBackends' | 'NoValidPort' | 'NoPodAddress' | 'NoSuchTargetPort' | 'AllWeightsZero';

const LACKS: Readonly<Record<Lack, string>> = {
  NoBackends: 'no selected Pod is ready on a base',
  NoValidPort: 'no port of the Service can be exported: the condition Invalid says why',
  NoPodAddress: 'the ready Pods have no address that may be used: see the event UnroutableAddress of their Nodes',
  NoSuchTargetPort: 'no selected Pod has a port with the name and protocol of targetPort',
  AllWeightsZero: 'the share of each backend is 0',
};

export interface ViewInput {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly settings: ExportSettings;
  /** All Pods that it selects. */
  readonly members: readonly ModulePod[];
  readonly serving: readonly ServingPod[];
  readonly arklets: Pick<Arklets, 'isAt'>;
}

/** Equal inputs give equal text, on every replica. */
export function viewOf(input: ViewInput): ExportView {
  const { cluster, namespace, name, settings, members, serving, arklets } = input;
  const faults = [...settings.faults];
  const notes = [...settings.notes];
  const rounded: string[] = [];
  const lacks = new Set<Lack>();
  if (settings.ports.length === 0 && faults.length > 0) lacks.add('NoValidPort');
  else if (serving.length === 0 && members.some(isWithoutAddress)) lacks.add('NoPodAddress');
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
    if (found.isTargetMissing) {
      lacks.add('NoSuchTargetPort');
      notes.push(`spec.ports[${port.name}].targetPort: no selected Pod has a port ${port.target} of ${port.transport}`);
    }
    if (found.isWeightless) {
      lacks.add('AllWeightsZero');
      notes.push(`spec.ports[${port.name}]: ${LACKS.AllWeightsZero}`);
    }
    const shares = found.rounded.map(
      ({ label, wanted, real }) => `${label} has ${percent(real)}, not ${percent(wanted)}`,
    );
    if (shares.length > 0) rounded.push(`port ${port.name}: ${shares.join(', ')}`);
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
  const [lack = 'NoBackends'] = lacks;
  const json = JSON.stringify(exported);
  const isEmpty = ports.every(({ backends }) => backends.length === 0);
  return {
    exported,
    json,
    faults,
    unknownWeights: [...unknownWeights].sort(),
    notes,
    lack: isEmpty ? lack : undefined,
    rounded,
  };
}

function isWithoutAddress({ isReady, isDeleting, ip }: ModulePod): boolean {
  return isReady && !isDeleting && ip === undefined;
}

function percent(share: number): string {
  return `${Number((100 * share).toFixed(1))} %`;
}

export interface StatusInput {
  readonly view: ExportView;
  /** Conflicts by group. */
  readonly conflicts: ReadonlyMap<string, Conflict>;
  /** Its hosts that another namespace shares with it. */
  readonly guestAt: readonly string[];
  readonly generation: number;
  /** Its conditions keep the time of their last change. */
  readonly stored: ExportServiceStatus | undefined;
  /** RFC 3339. */
  readonly nowText: string;
}

const MAX_MESSAGE_LENGTH = 1024;

/** What an ExportService shows. */
export function exportStatusOf(input: StatusInput): ExportServiceStatus {
  const { view, conflicts, guestAt, generation, stored, nowText } = input;
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
    ...(guestAt.length > 0 && { guestAt: [...guestAt] }),
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
      readyCondition(condition, { view, isLeftOut: lost.length > 0 && lost.length === exported.BCSGroup.length }),
      unknown === ''
        ? condition('UnknownWeight', false, 'AllWeighted', 'every backend has its share')
        : condition('UnknownWeight', true, 'NoSuchWeight', `no BCS-WEIGHT- label for ${unknown}: each has weight 1`),
      view.rounded.length > 0
        ? condition('WeightsRounded', true, 'BeyondRange', `weights are 1 to 256: ${view.rounded.join('; ')}`)
        : condition('WeightsRounded', false, 'SharesKept', 'every label has the share that it should have'),
    ],
  };
}

function readyCondition(
  condition: (type: ExportConditionType, isTrue: boolean, reason: string, message: string) => ExportServiceCondition,
  { view: { lack, notes }, isLeftOut }: { readonly view: ExportView; readonly isLeftOut: boolean },
): ExportServiceCondition {
  if (isLeftOut) return condition('Ready', false, 'Conflict', 'no group takes it');
  if (lack !== undefined) return condition('Ready', false, lack, [LACKS[lack], ...notes].join('; '));
  return condition('Ready', true, 'Exported', ['the Service is exported', ...notes].join('; '));
}
