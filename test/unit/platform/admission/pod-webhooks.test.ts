import { describe, expect, it } from 'vitest';
import { POD_WEBHOOKS, registerPodWebhooks, type Workload } from '../../../../src/platform/admission/pod-webhooks.ts';
import type { WebhookHandler } from '../../../../src/reconcile/webhooks.ts';

const ENV = 'virtual-kubelet.koupleless.io/env';
const OF_BASES = { key: 'schedule.koupleless.io/virtual-node', operator: 'Equal', value: 'True', effect: 'NoExecute' };

function ofEnv(value: string) {
  return { key: 'schedule.koupleless.io/node-env', operator: 'Equal', value, effect: 'NoExecute' };
}

const handlers = new Map<string, WebhookHandler>();
registerPodWebhooks(
  { register: ({ name }, handler) => void handlers.set(name, handler as unknown as WebhookHandler) },
  'dev',
);

function daemonSet(env: string | undefined, tolerations?: object[]): Workload {
  const labels = { 'virtual-kubelet.koupleless.io/component': 'module', ...(env && { [ENV]: env }) };
  const spec = { containers: [{ name: 'shop', image: 'https://jars.example.com/shop-1.0.0.jar' }] };
  const template = { metadata: { labels }, spec: { ...spec, ...(tolerations && { tolerations }) } };
  return { metadata: { name: 'shop', namespace: 'default' }, spec: { template } } as unknown as Workload;
}

/** What its template tolerates after it. */
function tolerationsOf(object: Workload, oldObject?: Workload): unknown {
  const request = { operation: oldObject ? 'UPDATE' : 'CREATE', namespace: 'default', object, oldObject } as const;
  const verdict = handlers.get('daemonsets')?.(request);
  const completed = verdict?.isAllowed ? (verdict.object as Workload | undefined) : undefined;
  return completed?.spec.template.spec.tolerations;
}

describe('the template of a DaemonSet', () => {
  it('is completed for the ENV that it names, else for that of the platform', () => {
    expect(POD_WEBHOOKS.map(({ name }) => name)).toContain('daemonsets');
    expect(tolerationsOf(daemonSet(undefined))).toEqual([OF_BASES, ofEnv('dev')]);
    expect(tolerationsOf(daemonSet('prod'))).toEqual([OF_BASES, ofEnv('prod')]);
  });

  it.each([
    [undefined, 'prod'],
    ['prod', 'test'],
    ['prod', undefined],
  ])('follows its ENV, from %s to %s', (before, after) => {
    const former = daemonSet(before, tolerationsOf(daemonSet(before)) as object[]);
    const changed = daemonSet(after, former.spec.template.spec.tolerations as object[]);
    expect(tolerationsOf(changed, former)).toEqual([OF_BASES, ofEnv(after ?? 'dev')]);
  });

  it('keeps the ENV that its author tolerates, while nothing else names one', () => {
    const own = daemonSet(undefined, [OF_BASES, ofEnv('prod')]);
    expect(tolerationsOf(own, own)).toEqual([OF_BASES, ofEnv('prod')]);
    expect(tolerationsOf(own)).toEqual([OF_BASES, ofEnv('prod')]);
  });
});
