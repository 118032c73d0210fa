import { identityOf } from '../../../src/labels.ts';
import { FENCE_AFTER_MS } from '../../../src/lease/member.ts';
import type { ClusterFacts, CommandFact } from './facts.ts';
import { sentAt } from './pauses.ts';
import { holderAt, type Tenure, tenuresOf } from './tenures.ts';
import type { CheckOptions, Violation } from './violation.ts';

/** From the successor's lease write on, what was under way may still arrive for so long. */
export const LATE_MS = 250;
/** Questions that were sent in one turn of the event loop arrive within this of each other. */
const TURN_MS = 10;
const QUESTIONS = new Set(['health', 'queryAllBiz']);

/** Each command came from the replica that held the base then, and that had renewed its membership. */
export function commandsOfOthers(facts: ClusterFacts, { since = 0, allowedLate = {} }: CheckOptions = {}): Violation[] {
  const tenures = tenuresOf(facts.leases);
  const renewals = Map.groupBy(facts.renewals, ({ replica }) => replica);
  const left = new Map(Object.entries(allowedLate));
  const turns = new Map<string, number>();
  const violations: Violation[] = [];
  for (const command of facts.commands) {
    if (command.at < since) continue;
    const sent = sentAt(command.at, facts.pauses);
    const held = tenures.get(command.base) ?? [];
    const found = notHolder(command, sent, held) ?? fenced(command, sent, renewals.get(command.replica));
    if (!found) continue;
    // A process that is stopped between its look at the lease and the socket sends the whole turn when it goes on.
    const turn = turns.get(command.replica);
    if (turn !== undefined && QUESTIONS.has(command.command) && command.at - turn <= TURN_MS) continue;
    const budget = left.get(command.replica) ?? 0;
    left.set(command.replica, budget - 1);
    if (budget <= 0) violations.push(found);
    else turns.set(command.replica, command.at);
  }
  return violations;
}

/** `sent`: at that time at the earliest. */
function notHolder(command: CommandFact, sent: number, tenures: readonly Tenure[]): Violation | undefined {
  const { replica, base, at } = command;
  const own = tenures.filter(({ holder }) => holder === replica);
  if (own.some(({ from, to }) => from <= at && sent <= to + LATE_MS)) return undefined;
  if (isFirstQuestion(command, sent, tenures)) return undefined;
  const last = own.findLast(({ from }) => from <= at);
  const words = wordsOf(command);
  if (last) {
    const successor = holderAt(tenures, at)?.holder || 'nobody';
    return { kind: 'two leaders', at, base, text: `${words} ${at - last.to} ms after ${successor} had the lease` };
  }
  const next = own[0];
  const when = next ? `${next.from - at} ms before it had the lease` : 'and never had the lease';
  return { kind: 'two leaders', at, base, text: `${words} ${when}` };
}

/** Before anybody leads a base, each replica that hears of it may ask it for its health: that changes nothing. */
function isFirstQuestion({ command }: CommandFact, sent: number, tenures: readonly Tenure[]): boolean {
  return command === 'health' && (holderAt(tenures, sent - LATE_MS)?.holder ?? '') === '';
}

function fenced(command: CommandFact, sent: number, renewals: ClusterFacts['renewals'] = []): Violation | undefined {
  const { base, at } = command;
  const last = renewals.reduce((newest, renewal) => (renewal.at <= at ? Math.max(newest, renewal.at) : newest), 0);
  if (sent - last <= FENCE_AFTER_MS + LATE_MS) return undefined;
  const when = last === 0 ? 'without a membership' : `${at - last} ms after it last renewed its membership`;
  return { kind: 'fenced leader', at, base, text: `${wordsOf(command)} ${when}` };
}

function wordsOf({ replica, command, module, base }: CommandFact): string {
  return `${replica} sent ${[command, module].filter(Boolean).join(' ')} to ${base}`;
}

/** Each status was written by the replica that held the base then. */
export function writesOfOthers(facts: ClusterFacts, { since = 0 }: CheckOptions = {}): Violation[] {
  const tenures = tenuresOf(facts.leases);
  const nodeOfPod = new Map(facts.pods.map(({ name, nodeName }) => [name, nodeName]));
  return facts.writes.flatMap((write): Violation[] => {
    const node = write.resource === 'nodes' ? write.name : (nodeOfPod.get(write.name) ?? '');
    const base = identityOf(node) ?? '';
    const tenure = holderAt(tenures.get(base), write.at);
    if (write.at < since || !tenure || !isOfOther(write.replica, tenure, sentAt(write.at, facts.pauses))) return [];
    const what = `${write.replica} wrote the status of ${write.name} (${base})`;
    const text = `${what} ${write.at - tenure.from} ms after ${tenure.holder || 'nobody'} had the lease`;
    return [{ kind: 'status write by a fenced replica', at: write.at, base, text }];
  });
}

function isOfOther(replica: string, { holder, from }: Tenure, sent: number): boolean {
  return holder !== replica && holder !== '' && sent > from + LATE_MS;
}
