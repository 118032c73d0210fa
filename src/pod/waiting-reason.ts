/** How a waiting reason behaves beside its word. */
interface ReasonRule {
  /** The reason of the event that reports it; undefined = none. */
  readonly event: string | undefined;
  readonly eventType: 'Normal' | 'Warning';
  /** The module does not run and will not by waiting: a Pod with restartPolicy Never has failed. */
  readonly isFailure: boolean;
  /** A kubelet's word for the same after several failures in a row. */
  readonly repeatedAs?: string;
}

function failure(event: string, repeatedAs?: string): ReasonRule {
  return { event, eventType: 'Warning', isFailure: true, ...(repeatedAs === undefined ? {} : { repeatedAs }) };
}

function wait(event?: string, eventType: ReasonRule['eventType'] = 'Warning'): ReasonRule {
  return { event, eventType, isFailure: false };
}

/** Reason of a container whose module name belongs to another namespace. */
export const NAME_TAKEN = 'ModuleNameTaken';

/**
 * Every reason that a waiting container of a vPod can have; kubelet words where one fits (docs/modules.md "Module
 * states").
 */
export const WAITING_REASONS = {
  ContainerCreating: wait(),
  CreateContainerConfigError: wait('Failed'),
  UnsupportedWorkload: wait(),
  VersionInUse: wait('VersionInUse'),
  ModuleNameTaken: wait('ModuleNameTaken'),
  BizDeactivated: wait('BizDeactivated'),
  ModuleReplaced: wait('ModuleReplaced', 'Normal'),
  SwitchError: wait('Failed'),
  ErrImagePull: failure('Failed', 'ImagePullBackOff'),
  ImagePullBackOff: failure('BackOff'),
  RunContainerError: failure('Failed', 'CrashLoopBackOff'),
  CrashLoopBackOff: failure('BackOff'),
  InstallTimeout: failure('Failed'),
  KillContainerError: wait('Failed'),
  ModuleBroken: failure('Failed', 'CrashLoopBackOff'),
  ModuleStopped: failure('Failed', 'CrashLoopBackOff'),
  ModuleVanished: failure('Failed', 'CrashLoopBackOff'),
  BaseRestarted: failure('BaseRestarted'),
  NodeAffinity: wait('NodeAffinity'),
  TaintToleration: wait('TaintToleration'),
  OutOfpods: wait('OutOfpods'),
  OutOfmemory: wait('OutOfmemory'),
} as const satisfies Record<string, ReasonRule>;

export type WaitingReason = keyof typeof WAITING_REASONS;

/** A kubelet's words for why it does not admit a Pod. */
const ADMISSION_REASONS = ['NodeAffinity', 'TaintToleration', 'OutOfpods', 'OutOfmemory'] as const;

export type AdmissionReason = (typeof ADMISSION_REASONS)[number];

export function isAdmissionReason(reason: string | undefined): reason is AdmissionReason {
  return ADMISSION_REASONS.some((known) => known === reason);
}

export function ruleOf(reason: string): ReasonRule | undefined {
  return Object.hasOwn(WAITING_REASONS, reason) ? WAITING_REASONS[reason as WaitingReason] : undefined;
}

/** The word for the `failures`-th failure in a row. */
export function repeatedReason(reason: WaitingReason, failures: number): WaitingReason {
  const repeatedAs = failures < 2 ? undefined : ruleOf(reason)?.repeatedAs;
  return (repeatedAs as WaitingReason | undefined) ?? reason;
}
