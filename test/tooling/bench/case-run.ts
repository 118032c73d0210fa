import type { CaseRun } from '../../bench/result.ts';

/** One that measured nothing, but for what is given. */
export function caseRun(parts: Partial<CaseRun>): CaseRun {
  return {
    run: 1,
    subject: '',
    tookSeconds: 8,
    values: {},
    details: {},
    usage: [],
    pauseMs: 0,
    kernelCpuSeconds: 0,
    ...parts,
  };
}
