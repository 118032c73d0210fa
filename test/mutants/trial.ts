/** A test file to be run while some sources have another text. */
export interface Trial {
  readonly testFile: string;
  /** Texts by absolute path; all other files are as on the disk. */
  readonly sources: Readonly<Record<string, string>>;
  readonly testTimeoutMs: number;
}

export interface TrialResult {
  readonly outcome: 'passed' | 'failed' | 'timed out';
  /** The first failure; empty when there is none. */
  readonly failure: string;
  readonly ms: number;
  readonly slowestTestMs: number;
  /** The numbers of the probes that ran. */
  readonly probes: readonly number[];
}

export type JudgeMessage =
  | { readonly kind: 'ready'; readonly testFiles: readonly string[] }
  | { readonly kind: 'result'; readonly result: TrialResult };

/** The global function that the probes in a source call. */
export const PROBE = 'globalThis.mutantProbe';
