import { canonicalAddress } from '../../ip-address.ts';
import type { ModulePod } from '../../kinds/module-pod.ts';
import { type CachedNode, readyStatusOf } from '../../kinds/vnode-object.ts';
import { portKeyOf } from '../../kube/objects.ts';
import type { Arklets } from './arklets.ts';
import type { Backend } from './export-service.ts';
import type { ExportedPort, ExportSettings } from './exported-service.ts';

/** A Pod that serves, and where. */
export interface ServingPod {
  readonly pod: ModulePod;
  /** Canonical: an address has several spellings. */
  readonly ip: string;
  readonly nodeName: string;
}

export interface ServingOptions {
  readonly nodeOf: (name: string) => CachedNode | undefined;
  /** Pods of a base that is silent, and not given up yet, are left out. */
  readonly dropsLost: boolean;
}

/**
 * The Pods that balancers may send requests to: Ready ones on a base. While a base cannot be reached by the controller,
 * or the controller by nobody, its modules serve as they did: they stay until the base is given up. While no controller
 * writes for a Node (Ready is Unknown), nobody uninstalls a module of a Pod that is deleted, so it serves on too.
 * A Pod that only kube-controller-manager shows as not Ready serves, also when it is deleted: the controller writes a
 * reason before it uninstalls anything. The Node and the Pod change in two writes, both when the controller goes and
 * when it comes back.
 */
export function servingPods(pods: Iterable<ModulePod>, { nodeOf, dropsLost }: ServingOptions): ServingPod[] {
  const serving: ServingPod[] = [];
  for (const pod of pods) {
    const node = pod.nodeName === undefined ? undefined : nodeOf(pod.nodeName);
    if (node === undefined || pod.ip === undefined || pod.isTerminal) continue;
    if (!isServing(pod, readyStatusOf(node), dropsLost)) continue;
    serving.push({ pod, ip: canonicalAddress(pod.ip), nodeName: node.name });
  }
  // Of two Pods with one address the younger one counts: the base activates its module.
  return serving.sort((a, b) => compare(b.pod.createdAt, a.pod.createdAt) || compare(a.pod.name, b.pod.name));
}

function isServing(pod: ModulePod, nodeReady: string | undefined, dropsLost: boolean): boolean {
  if (nodeReady === 'False' && dropsLost) return false;
  if (pod.isServing && (nodeReady === 'Unknown' || pod.isLeftUnready)) return true;
  return !pod.isDeleting && (pod.isReady || (pod.isServing && nodeReady !== 'True'));
}

export interface PortBackends {
  readonly backends: Backend[];
  /** Values of the weight label that the Service does not name, though it names others. */
  readonly unknownWeights: readonly string[];
  /** The port is that of an arklet: whoever reached it could install modules. */
  readonly isOfArklet: boolean;
  /** Pods serve, and none has a port of that name and protocol. */
  readonly isTargetMissing: boolean;
  /** There are backends, and all of them have the weight 0. */
  readonly isWeightless: boolean;
  /** Labels whose share differs from the one that is asked for by more than half a percent. */
  readonly rounded: readonly RoundedShare[];
}

/** Shares of all requests, from 0 to 1. */
export interface RoundedShare {
  readonly label: string;
  readonly wanted: number;
  readonly real: number;
}

export function backendsOf(
  exportedPort: ExportedPort,
  serving: readonly ServingPod[],
  { weightLabel, weights }: Pick<ExportSettings, 'weightLabel' | 'weights'>,
  arklets: Pick<Arklets, 'isAt'>,
): PortBackends {
  const found = new Map<string, Address>();
  const unknownWeights = new Set<string>();
  let isOfArklet = false;
  let isTargetMissing = serving.length > 0;
  for (const { pod, ip, nodeName } of serving) {
    const port = portOf(exportedPort, pod);
    if (port === undefined) continue;
    isTargetMissing = false;
    if (arklets.isAt(ip, port, nodeName)) {
      isOfArklet = true;
      continue;
    }
    const label = Object.hasOwn(pod.labels, weightLabel) ? pod.labels[weightLabel] : undefined;
    // Two versions on one base each keep their share; without shares a base gets no more requests for it.
    const key = JSON.stringify(hasWeights(weights) ? [ip, port, label] : [ip, port]);
    if (!found.has(key)) found.set(key, { ip, port, label });
  }
  const shares = [...found.values()].map(({ label }) => label);
  const { weightOf, rounded } = weighing(shares, weights);
  const areJudged = judgesOthers(weights, shares);
  const backends = [...found.values()].flatMap(({ ip, port, label }): Backend[] => {
    if (label !== undefined && areJudged && !Object.hasOwn(weights, label)) unknownWeights.add(label);
    const weight = weightOf(label);
    return weight === 0 ? [] : [{ targetIP: ip, targetPort: port, label: label === undefined ? [] : [label], weight }];
  });
  backends.sort(byAddress);
  const isWeightless = found.size > 0 && backends.length === 0;
  return { backends, unknownWeights: [...unknownWeights].sort(), isOfArklet, isTargetMissing, isWeightless, rounded };
}

interface Address {
  readonly ip: string;
  readonly port: number;
  readonly label: string | undefined;
}

/** Whether a port of a Service leads to any of the Pods. */
export function hasTarget(port: ExportedPort, serving: readonly ServingPod[]): boolean {
  return serving.some(({ pod }) => portOf(port, pod) !== undefined);
}

function portOf({ target, transport }: ExportedPort, { ports }: ModulePod): number | undefined {
  if (typeof target === 'number') return target;
  const key = portKeyOf(target, transport);
  return Object.hasOwn(ports, key) ? ports[key] : undefined;
}

function byAddress(a: Backend, b: Backend): number {
  const order = compare(a.targetIP, b.targetIP) || a.targetPort - b.targetPort;
  return order || compare(a.label.join(), b.label.join());
}

/** HAProxy takes no greater weight. */
const MAX_BACKEND_WEIGHT = 256;
/** Exact whole numbers are looked for up to here. */
const MAX_MULTIPLE = 1_000_000;

interface Weighing {
  readonly weightOf: (label: string | undefined) => number;
  readonly rounded: readonly RoundedShare[];
}

/**
 * The weight of a backend with a label, so that all backends of that label together have the share that the Service
 * gives them: whole numbers, as small as possible. A label without a share counts as a backend with share 1. All are 1
 * where fewer than two shares are named; 0: no requests.
 */
function weighing(labels: readonly (string | undefined)[], weights: Readonly<Record<string, number>>): Weighing {
  const shareOf = (label: string | undefined): number | undefined =>
    label !== undefined && Object.hasOwn(weights, label) ? weights[label] : undefined;
  if (!hasWeights(weights)) return { weightOf: (label) => (shareOf(label) === 0 ? 0 : 1), rounded: [] };
  const counts = new Map<string, number>();
  for (const label of labels)
    if (label !== undefined && shareOf(label)) counts.set(label, (counts.get(label) ?? 0) + 1);
  const eachOf = (label: string | undefined): number =>
    label === undefined ? 1 : (shareOf(label) ?? 1) / (counts.get(label) ?? 1);
  const scaled = scaling(labels.map(eachOf), [...counts.values()]);
  const weightOf = (label: string | undefined): number => (shareOf(label) === 0 ? 0 : scaled(eachOf(label)));
  return { weightOf, rounded: roundedShares(labels, eachOf, weightOf) };
}

/** What is not noticed in 200 requests is no difference. */
const TOLERATED = 0.005;

function roundedShares(
  labels: readonly (string | undefined)[],
  eachOf: (label: string | undefined) => number,
  weightOf: (label: string | undefined) => number,
): RoundedShare[] {
  const totals = { wanted: 0, real: 0 };
  const byLabel = new Map<string, { wanted: number; real: number }>();
  for (const label of labels) {
    const [wanted, real] = [eachOf(label), weightOf(label)];
    totals.wanted += wanted;
    totals.real += real;
    if (label === undefined) continue;
    const sum = byLabel.get(label) ?? { wanted: 0, real: 0 };
    byLabel.set(label, { wanted: sum.wanted + wanted, real: sum.real + real });
  }
  return [...byLabel]
    .map(([label, sum]) => ({ label, wanted: sum.wanted / totals.wanted, real: sum.real / totals.real }))
    .filter(({ wanted, real }) => Math.abs(wanted - real) > TOLERATED)
    .sort((a, b) => compare(a.label, b.label));
}

/** Makes whole numbers of quotients that have one of the `divisors` each: exact ones where those are small enough. */
function scaling(quotients: readonly number[], divisors: readonly number[]): (quotient: number) => number {
  const greatest = Math.max(...quotients, Number.MIN_VALUE);
  const multiple = divisors.reduce(leastCommonMultiple, 1);
  if (multiple <= MAX_MULTIPLE) {
    const common = quotients.map((quotient) => Math.round(quotient * multiple)).reduce(greatestCommonDivisor, 0);
    if ((greatest * multiple) / common <= MAX_BACKEND_WEIGHT) {
      return (quotient) => Math.round((quotient * multiple) / common);
    }
  }
  return (quotient) => Math.max(1, Math.round((quotient * MAX_BACKEND_WEIGHT) / greatest));
}

/** Whether a value without a share is worth a word. One share alone says nothing of others, unless no Pod has it. */
function judgesOthers(weights: Readonly<Record<string, number>>, labels: readonly (string | undefined)[]): boolean {
  const [only] = Object.keys(weights);
  return hasWeights(weights) || (only !== undefined && !labels.includes(only));
}

/** One share alone is a share of nothing. */
function hasWeights(weights: Readonly<Record<string, number>>): boolean {
  return Object.keys(weights).length >= 2;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** Infinity and numbers that are not exact any more are beyond every bound. */
function leastCommonMultiple(a: number, b: number): number {
  return a > MAX_MULTIPLE ? a : (a / greatestCommonDivisor(a, b)) * b;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
