import type { EventSeries } from './event-correlator.ts';

/** Maximum age of a waiting Normal: a burst may delay it this long, and somebody may still look for it. */
const MAX_NORMAL_AGE_MS = 120_000;
/** A burst leaves no more than these: the objects themselves say what has become of the others. */
export const MAX_NORMALS = 100;

interface Waiting {
  readonly series: EventSeries;
  readonly addedAt: number;
}

/**
 * Series that wait to be written, each once: what happens again meanwhile goes out with the same write.
 * Warnings go first; Normals are the first to be given up.
 */
export class EventQueue {
  readonly #capacity: number;
  readonly #onDropped: () => void;
  /** In order of arrival. Emptied by `next`. */
  readonly #warnings = new Map<EventSeries, Waiting>();
  readonly #normals = new Map<EventSeries, Waiting>();

  constructor(capacity: number, onDropped: () => void) {
    this.#capacity = capacity;
    this.#onDropped = onDropped;
  }

  get size(): number {
    return this.#warnings.size + this.#normals.size;
  }

  get hasWarning(): boolean {
    return this.#warnings.size > 0;
  }

  add(series: EventSeries, now: number): void {
    const isWarning = series.input.type === 'Warning';
    const queue = isWarning ? this.#warnings : this.#normals;
    if (queue.has(series)) return;
    if (!isWarning && this.#normals.size >= MAX_NORMALS) this.#dropOldest(this.#normals);
    if (this.size >= this.#capacity && !this.#dropOldest(this.#normals)) {
      this.#onDropped();
      if (!isWarning) return;
      this.#warnings.delete(firstOf(this.#warnings)?.series ?? series);
    }
    queue.set(series, { series, addedAt: now });
  }

  /** Takes the one to write next. */
  next(now: number): EventSeries | undefined {
    const warning = firstOf(this.#warnings);
    if (warning) {
      this.#warnings.delete(warning.series);
      return warning.series;
    }
    for (const { series, addedAt } of this.#normals.values()) {
      this.#normals.delete(series);
      if (now - addedAt <= MAX_NORMAL_AGE_MS) return series;
      this.#onDropped();
    }
    return undefined;
  }

  #dropOldest(queue: Map<EventSeries, Waiting>): boolean {
    const oldest = firstOf(queue);
    if (!oldest) return false;
    queue.delete(oldest.series);
    this.#onDropped();
    return true;
  }
}

function firstOf(queue: Map<EventSeries, Waiting>): Waiting | undefined {
  for (const waiting of queue.values()) return waiting;
  return undefined;
}
