import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../clock.ts';
import type { EventRecorder } from '../../../kube/events/event-recorder.ts';
import { mergePatchOf } from '../../../kube/merge-patch.ts';
import type { ResourceClient } from '../../../kube/resource.ts';
import type { Permit } from '../../../kube/transport/rest-lane.ts';
import type { Informer } from '../../../kube/watch/informer-types.ts';
import { type CachedModule, moduleSubject } from './cached-module.ts';
import type { ModuleObject } from './module.ts';
import { statusEvents } from './module-events.ts';
import type { ModuleStatus } from './module-status-schema.ts';

export interface ModuleReportsOptions {
  readonly modules: Informer<CachedModule>;
  readonly client: Pick<ResourceClient<ModuleObject>, 'mergePatch'>;
  readonly permit: Permit;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
}

/** Many Pods that change one after the other are one write of the problems. */
const PROBLEMS_EVERY_MS = 5_000;
/** Minimum time between two writes of counts alone, and between two that only undo what somebody has written. */
const COUNTS_EVERY_MS = 1_000;

interface Report {
  readonly uid: string;
  /** The status that was sent last. */
  readonly sent: ModuleStatus;
  /** When the last answer came, on the clock. */
  readonly at: number;
  /** The status before a write whose answer has not come: the events of that write are still to be recorded. */
  readonly unanswered?: { readonly before: ModuleStatus | undefined };
}

/** Writes the statuses of Modules, and records the events for their changes. */
export class ModuleReports {
  readonly #options: ModuleReportsOptions;
  /** Newest reports by key. An entry goes with its Module. */
  readonly #reports = new Map<string, Report>();

  constructor(options: ModuleReportsOptions) {
    this.#options = options;
  }

  forget(key: string): void {
    this.#reports.delete(key);
  }

  /** Whether the status of a Module is what was sent last. Another one was written by somebody else. */
  isOwn(key: string, module: CachedModule): boolean {
    return isDeepStrictEqual(this.#reportOf(key, module)?.sent, module.status);
  }

  /** Returns how long the write has to wait, ms; undefined: the status is as it should be. */
  async report(key: string, module: CachedModule, status: ModuleStatus): Promise<number | undefined> {
    const { clock, client, permit, modules } = this.#options;
    const { namespace, name, uid } = module;
    const last = this.#reportOf(key, module);
    const { before } = last?.unanswered ?? { before: module.status };
    if (isDeepStrictEqual(status, module.status)) {
      if (last?.unanswered === undefined) return undefined;
      this.#record(module, before, status);
      this.#reports.set(key, { uid, sent: last.sent, at: last.at });
      return undefined;
    }
    const { at = Number.NEGATIVE_INFINITY, sent = module.status } = last ?? {};
    const waitMs = at + intervalOf(sent, status) - clock.now();
    if (waitMs > 0) return waitMs;
    const patch = { metadata: { uid }, status: mergePatchOf(module.status ?? {}, status) };
    // The watch may bring it before the answer comes.
    this.#reports.set(key, { uid, sent: status, at, unanswered: { before } });
    const answer = await client.mergePatch({ namespace, name }, patch, { subresource: 'status', permit });
    modules.upsert(answer);
    const cached = modules.get(key)?.status;
    // One object in memory instead of two equal ones.
    const stored = cached !== undefined && isDeepStrictEqual(cached, status) ? cached : status;
    this.#reports.set(key, { uid, sent: stored, at: clock.now() });
    this.#record(module, before, status);
    return undefined;
  }

  #reportOf(key: string, { uid }: CachedModule): Report | undefined {
    const report = this.#reports.get(key);
    return report?.uid === uid ? report : undefined;
  }

  #record(module: CachedModule, before: ModuleStatus | undefined, status: ModuleStatus): void {
    const subject = moduleSubject(module);
    for (const event of statusEvents(before, status)) this.#options.recorder.event(subject, ...event);
  }
}

/** Minimum time after the last write, ms: 0 where a release or a condition has changed. */
function intervalOf(sent: ModuleStatus | undefined, status: ModuleStatus): number {
  if (sent === undefined || !isDeepStrictEqual(withoutCounts(sent), withoutCounts(status))) return 0;
  const { problems } = status;
  const isOfProblems = !isDeepStrictEqual(sent.problems, problems) && isDeepStrictEqual({ ...sent, problems }, status);
  return isOfProblems ? PROBLEMS_EVERY_MS : COUNTS_EVERY_MS;
}

/** A status without what changes with each Pod. Messages have counts too. */
function withoutCounts(status: ModuleStatus): object {
  const { replicas: _a, readyReplicas: _b, updatedReplicas: _c, problems: _d, conditions, ...rest } = status;
  return { ...rest, conditions: conditions.map(({ message: _message, ...condition }) => condition) };
}
