import type { BaseInfo } from '../tunnel/base.ts';
import type { TunnelName } from '../tunnel/tunnel.ts';

/** A base that was heard and has to answer a question before it becomes a VNode. */
export interface UnprovenBase {
  base: BaseInfo;
  readonly tunnel: TunnelName;
  lastBeatAt: number;
  askedAt: number;
  /** The question could not be sent, or nobody answered: the base may not listen yet. */
  isFailed: boolean;
  /** Source of its heartbeat: see `Envelope`. */
  readonly source: string | undefined;
}

/** Maximum number of unproven bases: a flood brings in as many before the first one is dropped for its silence. */
const MAX_UNPROVEN = 8_000;

/** The unproven bases by node name, the one that was asked first first. The oldest leaves when there are too many. */
export class UnprovenBases {
  readonly #byName = new Map<string, UnprovenBase>();

  get(nodeName: string): UnprovenBase | undefined {
    return this.#byName.get(nodeName);
  }

  /** Returns the number of bases that had to leave for it. */
  add(nodeName: string, base: UnprovenBase): number {
    this.#byName.delete(nodeName);
    this.#byName.set(nodeName, base);
    if (this.#byName.size <= MAX_UNPROVEN) return 0;
    const [oldest = nodeName] = this.#byName.keys();
    this.delete(oldest);
    return 1;
  }

  delete(nodeName: string): boolean {
    return this.#byName.delete(nodeName);
  }

  /** Drops those that were asked before `time`; returns how many. */
  dropAskedBefore(time: number): number {
    const before = this.#byName.size;
    for (const [nodeName, { askedAt }] of this.#byName) {
      if (askedAt >= time) break;
      this.#byName.delete(nodeName);
    }
    return before - this.#byName.size;
  }

  values(): IterableIterator<UnprovenBase> {
    return this.#byName.values();
  }

  get size(): number {
    return this.#byName.size;
  }
}
