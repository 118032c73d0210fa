import type { WaitingReason } from './waiting-reason.ts';

/** What a container of a vPod should show of its module. */
export type ModuleView =
  /** No list of the base was read yet: what was written last stands. */
  | { readonly kind: 'Unknown' }
  /** The image is no jar (V29): such a container does not count. */
  | { readonly kind: 'Unsupported' }
  /** In work on the base, or about to be; `sinceMs` monotonic. */
  | { readonly kind: 'Installing'; readonly sinceMs: number }
  /** `sharedWith`: the Pod that had the module installed, when that is another one. */
  | { readonly kind: 'Running'; readonly sharedWith?: string }
  /** `isEnded`: the module is not on the base, so one that ran before has ended. */
  | {
      readonly kind: 'Waiting';
      readonly reason: WaitingReason;
      readonly message: string;
      readonly isEnded: boolean;
      /** As it should be (a newer version took over): told by a Normal event. */
      readonly isExpected?: boolean;
    };

export interface ContainerView {
  readonly container: string;
  readonly view: ModuleView;
}
