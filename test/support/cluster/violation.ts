/** A promise that was not kept. */
export interface Violation {
  readonly kind:
    | 'two leaders'
    | 'fenced leader'
    | 'executed twice'
    | 'uninstalled though wanted'
    | 'Node not Ready'
    | 'status write by a fenced replica';
  readonly at: number;
  /** Whom it is about. */
  readonly base: string;
  readonly text: string;
}

export interface CheckOptions {
  /** Wall clock, ms: what happened before is not judged, but known. */
  readonly since?: number;
  /**
   * Commands of a replica that may come late: the one in flight when it was stopped, and the questions that it asked in
   * the same turn of its event loop. Default 0.
   */
  readonly allowedLate?: Readonly<Record<string, number>>;
}
