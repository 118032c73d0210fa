import { ControllerError } from '../../errors.ts';
import type { KubeObject } from '../objects.ts';
import { ApiError } from '../transport/api-error.ts';
import type { RestRequest } from '../transport/rest-lane.ts';

/** A reason to replace a watch that has not failed. */
export class WatchError extends ControllerError {
  readonly kind: 'silent' | 'paused' | 'rolled-back';

  constructor(kind: WatchError['kind'], message: string) {
    super('Kube.WatchFailed', message);
    this.kind = kind;
  }
}

export interface WatchEvent {
  readonly type: string;
  /** The object that changed; for an ERROR a `Status`. */
  readonly object: KubeObject;
}

/** Parses a line of a watch. Throws `Kube.WatchFailed` for one that is not an event. */
export function parseWatchEvent(line: Buffer, onUnreadable: (why: string) => void): WatchEvent {
  let event: unknown;
  try {
    event = JSON.parse(line.toString('utf8'));
  } catch {
    // The parser's message may quote the object.
    onUnreadable('not JSON');
    throw new ControllerError('Kube.WatchFailed', 'a line of the watch is not JSON');
  }
  if (isWatchEvent(event)) return event;
  onUnreadable('not a watch event');
  throw new ControllerError('Kube.WatchFailed', 'a line of the watch is not a watch event');
}

function isWatchEvent(value: unknown): value is WatchEvent {
  if (typeof value !== 'object' || value === null) return false;
  const { type, object } = value as Partial<WatchEvent>;
  if (typeof type !== 'string' || typeof object !== 'object' || object === null) return false;
  return type === 'ERROR' || typeof object.metadata === 'object';
}

/**
 * The query of a watch that streams the list first, or of one after a version. `random` spreads the reconnects of many
 * watches that began together.
 */
export function watchQueryOf(
  streamsList: boolean,
  resourceVersion: string | undefined,
  random: number,
): NonNullable<RestRequest['query']> {
  const common = { watch: true, allowWatchBookmarks: true, timeoutSeconds: Math.floor(300 + random * 300) };
  return streamsList
    ? { ...common, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
    : { ...common, resourceVersion };
}

/** The level and the fields of the log line about a watch that ended. */
export function interruptionOf(
  error: unknown,
  delayMs: number,
): Readonly<Record<string, unknown>> & { level: 'info' | 'warn' } {
  // What goes on at once is routine: a silent watch, a server without streaming lists.
  const level = delayMs === 0 || isInitializing(error) ? 'info' : 'warn';
  // The answer of an API server says it all; a stack would say where this program has read it.
  return error instanceof ApiError ? { level, reason: error.message, status: error.status } : { level, err: error };
}

/** What an API server answers for the first seconds of a CRD. */
function isInitializing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 429 && error.message.includes('(re)initializing');
}
