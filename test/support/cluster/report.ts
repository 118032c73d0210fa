import { identityOf, nodeNameOf } from '../../../src/labels.ts';
import type { ClusterFacts } from './facts.ts';
import type { Violation } from './violation.ts';

const SHOWN = 5;
const AROUND_MS = 1_500;
const LINES_AROUND = 40;
const HELD_FOR_MS = 120_000;

interface Line {
  readonly at: number;
  readonly text: string;
}

/** What went wrong: how often, and the first of it with what happened to that base around it; '' when nothing did. */
export function reportOf(facts: ClusterFacts, violations: readonly Violation[]): string {
  if (violations.length === 0) return '';
  const counts = [...Map.groupBy(violations, ({ kind }) => kind)].map(([kind, all]) => `${kind}: ${all.length}`);
  const shown = groupsOf(violations).map((group) => inContext(facts, group));
  return [`${violations.length} violations (${counts.join(', ')})`, ...shown].join('\n\n');
}

/** The first ones, those of one base and one moment together. */
function groupsOf(violations: readonly Violation[]): Violation[][] {
  const groups: Violation[][] = [];
  for (const violation of violations) {
    const group = groups.find(([first]) => first?.base === violation.base && violation.at - first.at <= AROUND_MS);
    if (group) group.push(violation);
    else if (groups.length < SHOWN) groups.push([violation]);
  }
  return groups;
}

function inContext(facts: ClusterFacts, violations: readonly Violation[]): string {
  const [{ at, base } = { at: 0, base: '' }] = violations;
  const near = linesOf(facts, base).filter((line) => Math.abs(line.at - at) <= AROUND_MS);
  const notes = facts.notes.filter((note) => note.at <= at + AROUND_MS && note.at >= at - HELD_FOR_MS);
  const tenures = leaseLines(facts, base)
    .filter((line) => line.at < at - AROUND_MS)
    .slice(-2);
  const faults = violations.map(({ kind, text, at: when }) => ({ at: when, text: `>>> ${kind}: ${text}` }));
  const lines = [...tenures, ...notes, ...closest(near, at), ...faults].sort((a, b) => a.at - b.at);
  return [base, ...lines.map((line) => `${timeOf(line.at)} ${offsetOf(line.at - at)} ${line.text}`)].join('\n');
}

function closest(lines: readonly Line[], at: number): Line[] {
  return lines.toSorted((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at)).slice(0, LINES_AROUND);
}

/** Everything that was seen of one base. */
function linesOf(facts: ClusterFacts, base: string): Line[] {
  const node = nodeNameOf(base);
  const isOfBase = (fact: { base: string }): boolean => fact.base === base;
  const pods = facts.pods.filter(({ nodeName }) => nodeName === node);
  const names = new Set([node, ...pods.map(({ name }) => name)]);
  return [
    ...leaseLines(facts, base),
    ...facts.commands.filter(isOfBase).map(({ at, replica, command, module }) => {
      return { at, text: `${replica} -> ${command} ${module}` };
    }),
    ...facts.operations.filter(isOfBase).map(({ at, command, module, outcome, stateAtReceipt }) => {
      return { at, text: `base ${command} ${module} ${stateAtReceipt || '-'}: ${outcome}` };
    }),
    ...pods.map(({ at, name, modules, deletedAt, ready, isGone }) => {
      const state = isGone ? 'gone' : `${deletedAt === undefined ? '' : 'deleting '}Ready=${ready}`;
      return { at, text: `Pod ${name} ${modules.join()} ${state}` };
    }),
    ...facts.nodes
      .filter(({ name }) => identityOf(name) === base)
      .map(({ at, ready, reason, isGone }) => ({ at, text: `Node ${isGone ? 'gone' : `Ready=${ready} ${reason}`}` })),
    ...facts.writes
      .filter(({ name }) => names.has(name))
      .map(({ at, replica, resource, name }) => ({ at, text: `${replica} wrote ${resource}/status of ${name}` })),
  ];
}

/** A renewal by the same holder is none. */
function leaseLines({ leases }: ClusterFacts, base: string): Line[] {
  const versions = leases.filter((lease) => lease.base === base);
  return versions.flatMap(({ at, holder, acquiredAt, transitions, isGone }, index) => {
    const before = versions[index - 1];
    if (before && before.holder === holder && before.isGone === isGone) return [];
    const who = isGone ? 'gone' : `held by ${holder || 'nobody'} (${transitions}), seen ${at - acquiredAt} ms later`;
    return [{ at: isGone ? at : acquiredAt, text: `lease ${who}` }];
  });
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(11, 23);
}

function offsetOf(ms: number): string {
  return `${ms > 0 ? '+' : ''}${ms} ms`.padStart(10);
}
