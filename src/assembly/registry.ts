import type { ControllerModule } from '../reconcile/controller-module.ts';

/** Controllers by their names in `CONTROLLERS`, in the order in which they start. */
export type Registry = ReadonlyMap<string, () => Promise<ControllerModule>>;

/** The controllers of this program. One that is off is not even loaded. */
export const REGISTRY: Registry = new Map([
  ['vk', async () => (await import('./vk.ts')).VK],
  ['peer', async () => (await import('../platform/peer/peer.ts')).PEER],
  ['rollout', async () => (await import('../platform/rollout/rollout.ts')).ROLLOUT],
  ['export', async () => (await import('../platform/export/export.ts')).EXPORT],
  // Last: it waits for its certificate, and asks the others about requests.
  ['admission', async () => (await import('../platform/admission/admission.ts')).ADMISSION],
]);

/** Loads the controllers that are on. */
export function loadControllers(registry: Registry, names: readonly string[]): Promise<ControllerModule[]> {
  const wanted = [...registry].filter(([name]) => names.includes(name));
  return Promise.all(wanted.map(([, load]) => load()));
}
