import { describe, expect, it } from 'vitest';
import { ControllerParts, type SharedParts } from '../../../src/assembly/controller-parts.ts';
import { DEPLOYMENTS, PODS } from '../../../src/kube/resource.ts';
import { READ } from '../../../src/reconcile/access.ts';
import type { ControllerDefinition } from '../../../src/reconcile/controller-definition.ts';
import { type WebhookRule, Webhooks } from '../../../src/reconcile/webhooks.ts';

const RULE: WebhookRule = {
  name: 'pods',
  path: 'validate',
  kind: PODS,
  operations: ['CREATE'],
  failurePolicy: 'Ignore',
  use: '',
};
const WATCHED = { kind: 'Pod', path: '/api/v1/pods', project: () => ({}) as never };

function partsOf(more: Partial<ControllerDefinition> = {}) {
  const definition: ControllerDefinition = {
    name: 'sample',
    summary: '',
    access: [{ kind: PODS, verbs: READ, use: '' }],
    build: () => ({ groups: [] }),
    ...more,
  };
  let isSynced = false;
  const managers: string[] = [];
  const shared = {
    informers: { get: () => ({ hasSynced: () => isSynced, whenSynced: async () => true }) },
    resourcesOf: (manager: string) => {
      managers.push(manager);
      return { of: () => ({}) };
    },
    leaderOf: (name: string) => ({ name, isLeading: () => true }),
    webhooks: new Webhooks(),
  } as never as SharedParts;
  const parts = new ControllerParts(definition, shared);
  const sync = (): void => {
    isSynced = true;
  };
  return { parts, shared, managers, sync };
}

const NO_CRDS = { whenInstalled: () => undefined } as never;

describe('a controller gets no more than it declares', () => {
  it.each<[string, string, (parts: ControllerParts) => unknown]>([
    [
      'an informer',
      'list and watch /api/v1/nodes',
      ({ context }) => context.informers.get({ ...WATCHED, path: '/api/v1/nodes' }),
    ],
    ['a client', 'does not declare deployments', ({ context }) => context.resources.of(DEPLOYMENTS)],
    ['a Lease', 'does not declare that it leads', ({ context }) => context.leader()],
    [
      'a webhook',
      'does not declare the webhook pods',
      ({ context }) => context.webhooks.register(RULE, () => ({ isAllowed: true })),
    ],
  ])('%s', (_what, message, act) => {
    const { parts } = partsOf();
    expect(() => act(parts)).toThrow(message);
  });

  it('an informer of a kind that it only writes', () => {
    const { parts } = partsOf({ access: [{ kind: PODS, verbs: ['create'], use: '' }] });
    expect(() => parts.context.informers.get(WATCHED)).toThrow('does not declare to list and watch');
  });
});

describe('a controller that does less than it declares does not start', () => {
  it('without the handler of a webhook', () => {
    const { parts } = partsOf({ webhooks: [RULE] });
    expect(() => parts.branchOf({ groups: [] }, NO_CRDS)).toThrow('no handler for the webhook pods');
  });

  it('without its Lease', () => {
    const { parts } = partsOf({ leads: true });
    expect(() => parts.branchOf({ groups: [] }, NO_CRDS)).toThrow('declares that it leads');
  });
});

it('a handler is asked once the caches of its controller are whole', () => {
  const { parts, shared, sync } = partsOf({ webhooks: [RULE] });
  parts.context.informers.get(WATCHED);
  parts.context.webhooks.register(RULE, () => ({ isAllowed: true }));
  const key = { path: 'validate', operation: 'CREATE', apiVersion: 'v1', plural: 'pods' } as const;
  expect(shared.webhooks.find(key)).toBe('NotReady');
  sync();
  expect(shared.webhooks.find(key)).toBeTypeOf('function');
});

it('its Lease and its field manager have its name, and its Lease starts before its own parts', () => {
  const { parts, managers } = partsOf({ leads: true });
  parts.context.leader();
  const own = [{ name: 'loop', run: async () => {} }];
  const names = parts.branchOf({ groups: [own] }, NO_CRDS).map((group) => group.map(({ name }) => name));
  expect(names).toEqual([['caches of sample'], ['leader of sample'], ['loop']]);
  expect(managers).toEqual(['platform-sample']);
});
