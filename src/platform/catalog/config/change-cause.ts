import { CHANGED_BY_ANNOTATION } from '../../../labels.ts';
import { type ChangeCause, type LastCause, MAX_PERSON_LENGTH, MAX_REASON_LENGTH } from './module-config.ts';

export const CHANGE_CAUSE = 'kubernetes.io/change-cause';

type Annotations = Readonly<Record<string, string>>;

/** What the annotations say of a change, shortened to what the status keeps. */
export function causeIn(annotations: Annotations): ChangeCause {
  const by = shortened(annotations[CHANGED_BY_ANNOTATION], MAX_PERSON_LENGTH);
  const reason = shortened(annotations[CHANGE_CAUSE], MAX_REASON_LENGTH);
  return { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
}

/**
 * Who changed the content, and why. An annotation that was there with the content before says nothing of this one,
 * except a name beside another reason: the API server lets nobody write a reason beside somebody else's name.
 * `before`: what `causeIn` gave for the content before, undefined for the first one; `pending` is what came with a
 * content that had no version yet. `source`: digest of the content, as in `pending`.
 */
export function causeOf(before: LastCause | undefined, annotations: Annotations, source: string): ChangeCause {
  if (before?.pending?.source === source) {
    const { source: _source, ...cause } = before.pending;
    return cause;
  }
  const now = causeIn(annotations);
  const isReasonNew = now.reason !== undefined && now.reason !== before?.reason;
  return {
    ...(now.by !== undefined && (isReasonNew || now.by !== before?.by) && { by: now.by }),
    ...(isReasonNew && { reason: now.reason }),
  };
}

/** Cut between characters. Empty text is none. */
function shortened(text: string | undefined, length: number): string | undefined {
  const trimmed = text?.trim() ?? '';
  return trimmed === '' ? undefined : [...trimmed].slice(0, length).join('');
}
