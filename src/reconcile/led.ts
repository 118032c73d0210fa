import type { ControllerContext } from './controller-definition.ts';
import { Reconciler, type ReconcilerOptions } from './reconciler.ts';

/** The loop of a controller that leads: it drops keys while another process leads. */
export function ledReconciler(
  name: string,
  { leader, clock, logger, metrics }: Pick<ControllerContext, 'leader' | 'clock' | 'logger' | 'metrics'>,
  options: Pick<ReconcilerOptions, 'workers' | 'reconcile'>,
): Reconciler {
  return new Reconciler({ ...options, name, leader: leader(), clock, logger, metrics });
}
