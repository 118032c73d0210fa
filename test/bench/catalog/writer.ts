import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'undici';
import { MERGE_PATCH } from '../../../src/kube/transport/rest-lane.ts';
import type { ChangeSent } from './latencies.ts';
import { monotonicMs } from './monotonic.ts';
import { type BenchModule, changeOf, modulePath } from './objects.ts';

export interface ChangesToWrite {
  readonly pool: Pool;
  readonly modules: readonly BenchModule[];
  /** Number of the first change. */
  readonly from: number;
  readonly count: number;
  /** Changes in a second. */
  readonly rate: number;
}

/**
 * Changes one Module after the other, each at its time, whatever the answers to those before. Only a Module whose former
 * change has no answer waits for it, since nobody knew which of the two came first; that counts as late. Resolves with
 * the last answer. Rejects when a change is refused.
 */
export async function writeChanges({ pool, modules, from, count, rate }: ChangesToWrite): Promise<ChangeSent[]> {
  const startedAt = monotonicMs();
  const latest = new Map<BenchModule, Promise<ChangeSent>>();
  const asked: Promise<ChangeSent>[] = [];
  let failure: unknown;
  for (let turn = 0; turn < count && failure === undefined; turn++) {
    const dueAt = startedAt + (turn * 1000) / rate;
    // A timer may be early.
    for (let now = monotonicMs(); now < dueAt; now = monotonicMs()) await delay(Math.ceil(dueAt - now));
    const module = modules[turn % modules.length];
    if (module === undefined) throw new Error('there are no Modules');
    const former = latest.get(module);
    const numbered = { number: from + turn, dueAt };
    const change =
      former !== undefined ? former.then(() => write(pool, module, numbered)) : write(pool, module, numbered);
    latest.set(module, change);
    asked.push(change);
    change.then(
      () => {
        if (latest.get(module) === change) latest.delete(module);
      },
      (error: unknown) => {
        failure ??= error;
      },
    );
  }
  return Promise.all(asked);
}

async function write(
  pool: Pool,
  module: BenchModule,
  { number, dueAt }: Pick<ChangeSent, 'number' | 'dueAt'>,
): Promise<ChangeSent> {
  const path = modulePath(module);
  const sentAt = monotonicMs();
  const response = await pool.request({
    method: 'PATCH',
    path,
    headers: { accept: 'application/json', 'content-type': MERGE_PATCH },
    body: JSON.stringify(changeOf(number)),
  });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`PATCH ${path}: ${response.statusCode} ${text}`);
  return { number, dueAt, sentAt, answeredAt: monotonicMs() };
}
