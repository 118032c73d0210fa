import { nodeNameOf } from '../../../src/labels.ts';
import { eventually } from '../eventually.ts';
import { violationsOf } from './check.ts';
import type { Cluster, TunnelKind } from './cluster.ts';
import { balanced } from './lease-waits.ts';
import { reportOf } from './report.ts';
import { Roller, RollingDeployment } from './roller.ts';
import type { CheckOptions } from './violation.ts';
import { settled } from './workload.ts';

const SETTLED_WITHIN_MS = 60_000;

export interface Stage {
  readonly cluster: Cluster;
  /** A Deployment on these bases only, one Pod on each, rolled out in its first version. It goes with the scenario. */
  deploy(name: string, bases: readonly string[]): Promise<RollingDeployment>;
  /** Stands in the report and among the annotations of the test. */
  note(text: string): void;
}

/**
 * Replicas that end, start, or hear nothing any more; their processes, which stop and go on; names, which two processes
 * share; the link to the API server, or to the broker; the API server itself.
 */
export type FaultOf = 'replicas' | 'processes' | 'names' | 'api-link' | 'broker' | 'api';

export interface Scenario {
  /** Begins with the fault, ends with what must be true. */
  readonly name: string;
  /** What the fault is of. */
  readonly of: FaultOf;
  /** The tunnel that it needs. */
  readonly over?: TunnelKind;
  readonly allowedLate?: CheckOptions['allowedLate'];
  /** The fault, and what is promised while it lasts. Whatever it cut is healed afterwards. */
  act(stage: Stage): Promise<void>;
}

/** What a scenario came to: undefined, or what was not as promised. */
export interface Outcome {
  readonly notes: string[];
  readonly failure: Error | undefined;
}

/**
 * Runs a scenario while `rolling` Deployments roll, on bases that are shared by all: each replica has something to lose.
 * Afterwards all is healed, and the history is checked.
 */
export async function play(
  cluster: Cluster,
  { name, act, allowedLate }: Pick<Scenario, 'name' | 'act' | 'allowedLate'>,
  rolling: readonly RollingDeployment[],
): Promise<Outcome> {
  const begunAt = Date.now();
  const note = (text: string): void => cluster.recorder.note(text);
  note(`scenario: ${name}`);
  await balanced(cluster, cluster.living);
  const startedAt = Date.now();
  const deployed: RollingDeployment[] = [];
  const deploy = async (deploymentName: string, bases: readonly string[]): Promise<RollingDeployment> => {
    const deployment = onBases(cluster, deploymentName, bases);
    deployed.push(deployment);
    await deployment.next();
    await deployment.untilRolled(30_000);
    return deployment;
  };
  const roller = new Roller(rolling);
  const problems: unknown[] = [];
  const trying = (step: () => Promise<unknown>): Promise<unknown> => step().catch((error) => problems.push(error));
  await trying(() => act({ cluster, deploy, note }));
  note('healing');
  await trying(() => cluster.heal());
  await trying(() => membersAgain(cluster));
  await roller.stop();
  note(`${roller.count} roll-outs were complete`);
  for (const deployment of rolling) await trying(() => deployment.untilRolled(SETTLED_WITHIN_MS));
  await trying(() => removeAll(cluster, deployed));
  await trying(() => settled(cluster, SETTLED_WITHIN_MS));
  note(
    `settled ${Date.now() - startedAt} ms after the begin; we stood still for ${cluster.recorder.pausedMs(startedAt)} ms`,
  );
  const { report, words } = await checked(cluster, allowedLate);
  const notes = [...cluster.recorder.notesSince(begunAt), words];
  if (report !== '') problems.push(new Error(report));
  return { notes, failure: problems.length === 0 ? undefined : joined(problems) };
}

/** The report on everything since the last one, and how much that was. */
export async function checked(
  cluster: Cluster,
  allowedLate: CheckOptions['allowedLate'] = {},
): Promise<{ report: string; words: string }> {
  const since = cluster.checkedUntil;
  cluster.checkedUntil = Date.now();
  const facts = await cluster.recorder.facts();
  const judged = (['commands', 'operations', 'writes', 'leases'] as const).map((kind) => {
    return `${facts[kind].filter(({ at }) => at >= since).length} ${kind}`;
  });
  const words = `checked: ${judged.join(', ')}`;
  return { report: reportOf(facts, violationsOf(facts, { since, allowedLate })), words };
}

function joined(problems: readonly unknown[]): Error {
  const texts = problems.map((problem) =>
    problem instanceof Error ? (problem.stack ?? problem.message) : `${problem}`,
  );
  return new Error(texts.join('\n\n'), { cause: problems[0] });
}

/** All that live are ready again. */
async function membersAgain(cluster: Cluster): Promise<void> {
  for (const replica of cluster.living) await replica.untilReady();
}

export function onBases({ world }: Cluster, name: string, bases: readonly string[]): RollingDeployment {
  const values = bases.map(nodeNameOf);
  const required = { nodeSelectorTerms: [{ matchExpressions: [{ key: HOSTNAME, operator: 'In', values }] }] };
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
  const podAntiAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: HOSTNAME, labelSelector: { matchLabels: { app: name } }, matchLabelKeys: ['version'] },
    ],
  };
  return new RollingDeployment(world, name, {
    replicas: bases.length,
    spec: { affinity: { nodeAffinity, podAntiAffinity } },
  });
}

const HOSTNAME = 'kubernetes.io/hostname';

async function removeAll({ world, recorder }: Cluster, deployments: readonly RollingDeployment[]): Promise<void> {
  for (const { name } of deployments) {
    await world.admin.delete(`/apis/apps/v1/namespaces/default/deployments/${name}`);
  }
  await eventually(() => {
    const left = recorder.livePods().filter((pod) => deployments.some(({ name }) => pod.name.startsWith(`${name}-`)));
    if (left.length > 0) throw new Error(`${left.length} Pods of the scenario are left`);
  });
}
