import type { WaitingReason } from './waiting-reason.ts';

export interface WaitingView {
  readonly kind: 'Waiting';
  readonly reason: WaitingReason;
  readonly message: string;
  /** The module is not on the base, so one that ran before has ended. */
  readonly isEnded: boolean;
  /** Whether it waits as it should (a newer version took over): reported by a Normal event. */
  readonly isExpected?: boolean;
}

/** What a container of a vPod should show of its module. */
export type ModuleView =
  /** No list of the base was read yet: what was written last stands. */
  | { readonly kind: 'Unknown' }
  /** The image is no jar: such a container does not count. */
  | { readonly kind: 'Unsupported' }
  /**
   * In work on the base, or about to be; `sinceMs` monotonic. `isSwitch`: it is there and is made the active version.
   */
  | { readonly kind: 'Installing'; readonly sinceMs: number; readonly isSwitch?: boolean }
  /** `sharedWith`: the Pod that had the module installed, when that is another one. */
  | { readonly kind: 'Running'; readonly sharedWith?: string }
  | WaitingView;

export interface ContainerView {
  readonly container: string;
  readonly view: ModuleView;
}
