import { ControllerError } from '../../errors.ts';
import type { KubeObject } from '../objects.ts';

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
  /** For an ERROR a `Status`. */
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
