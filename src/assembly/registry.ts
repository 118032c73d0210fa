import type { ControllerDefinition } from '../reconcile/controller-definition.ts';
import { isAbout, type WebhookKey } from '../reconcile/webhooks.ts';
import type { ProcessContext } from './process.ts';

/** Controllers by their names in `CONTROLLERS`. */
export type Registry = ReadonlyMap<string, () => Promise<ControllerDefinition<ProcessContext>>>;

/** The controllers of this program. One that is off is not even loaded. */
export const REGISTRY: Registry = new Map([
  ['vk', async () => (await import('./vk.ts')).VK],
  ['peer', async () => (await import('../platform/peer/peer.ts')).PEER],
  ['rollout', async () => (await import('../platform/rollout/rollout.ts')).ROLLOUT],
  ['catalog', async () => (await import('../platform/catalog/catalog.ts')).CATALOG],
  ['export', async () => (await import('../platform/export/export.ts')).EXPORT],
  ['admission', async () => (await import('../platform/admission/admission.ts')).ADMISSION],
]);

/** Loads the controllers that are on. */
export function loadControllers(
  registry: Registry,
  names: readonly string[],
): Promise<ControllerDefinition<ProcessContext>[]> {
  const wanted = [...registry].filter(([name]) => names.includes(name));
  return Promise.all(wanted.map(([, load]) => load()));
}

/** Whether any controller declares a webhook for such requests. Loads all of them, so only for a request of one that is off. */
export async function declaresWebhook(registry: Registry, key: WebhookKey): Promise<boolean> {
  const all = await loadControllers(registry, [...registry.keys()]);
  return all.some(({ webhooks = [] }) => webhooks.some((rule) => isAbout(rule, key)));
}
