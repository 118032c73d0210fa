import { quantile } from '../scale/cost.ts';
import type { ChangeSeen } from './observer/change-book.ts';

/** A change as the bench has written it, ms on the clock of `monotonicMs`. */
export interface ChangeSent {
  readonly number: number;
  /** Time of its turn. */
  readonly dueAt: number;
  /** Time at which its request was handed to the pool of connections. */
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** Times of a burst of changes, ms. A change that never came to its workload has taken forever. */
export interface Latencies {
  /** Time from the event of the Module to that of the workload. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Time from the request of the change to the event of the workload. */
  readonly sentP50: number;
  readonly sentP99: number;
  /** Time from the turn of a change to its request: what the bench itself was late. */
  readonly lateP99: number;
  readonly lateMax: number;
  /** Time from the request of the change to its answer. */
  readonly answerP99: number;
  /** Changes that no workload was seen with, nor with a later one. */
  readonly lost: number;
  readonly overtaken: number;
  /** Changes answered in a second. */
  readonly rate: number;
}

export function latenciesOf(sent: readonly ChangeSent[], seen: readonly ChangeSeen[]): Latencies {
  const byNumber = new Map(seen.map((change) => [change.number, change]));
  const changes = sent.map((one) => {
    const { moduleAt = null, workloadAt = null } = byNumber.get(one.number) ?? {};
    const isSeen = moduleAt !== null && workloadAt !== null;
    return {
      // The two watches may be a little apart.
      tookMs: isSeen ? Math.max(0, workloadAt - moduleAt) : Number.POSITIVE_INFINITY,
      sinceSentMs: isSeen ? workloadAt - one.sentAt : Number.POSITIVE_INFINITY,
    };
  });
  const took = sorted(changes.map(({ tookMs }) => tookMs));
  const sinceSent = sorted(changes.map(({ sinceSentMs }) => sinceSentMs));
  const late = sorted(sent.map(({ dueAt, sentAt }) => Math.max(0, sentAt - dueAt)));
  const answers = sorted(sent.map(({ sentAt, answeredAt }) => answeredAt - sentAt));
  return {
    p50: quantile(took, 0.5),
    p99: quantile(took, 0.99),
    max: quantile(took, 1),
    sentP50: quantile(sinceSent, 0.5),
    sentP99: quantile(sinceSent, 0.99),
    lateP99: quantile(late, 0.99),
    lateMax: quantile(late, 1),
    answerP99: quantile(answers, 0.99),
    lost: took.filter((ms) => !Number.isFinite(ms)).length,
    overtaken: seen.filter(({ isOvertaken }) => isOvertaken).length,
    rate: rateOf(sent),
  };
}

function sorted(values: readonly number[]): number[] {
  return values.toSorted((a, b) => a - b);
}

/** Changes in a second, from the first request to the last answer: more than the API server takes is not done at that pace. */
function rateOf(sent: readonly ChangeSent[]): number {
  const startedAt = Math.min(...sent.map(({ sentAt }) => sentAt));
  const endedAt = Math.max(...sent.map(({ answeredAt }) => answeredAt));
  return (1000 * sent.length) / (endedAt - startedAt);
}
