import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ModulePod, projectModulePod } from '../../../../src/kinds/module-pod.ts';
import { objectKey } from '../../../../src/kube/watch/informer-types.ts';
import { Selections } from '../../../../src/platform/export/selections.ts';
import { podOf } from './export-world.ts';

type Labels = Record<string, string>;

function modulePod(namespace: string, name: string, labels: Labels): ModulePod {
  return { ...projectModulePod(podOf('app', name)), namespace, labels };
}

const namespace = fc.constantFrom('t1', 't2');
const name = fc.constantFrom('a', 'b', 'c');
const value = fc.constantFrom('1', '2');
const labels: fc.Arbitrary<Labels> = fc.dictionary(fc.constantFrom('x', 'y', 'toString'), value, { maxKeys: 3 });
const change = fc.oneof(
  fc.record({ type: fc.constant('put-service' as const), namespace, name, labels }),
  fc.record({ type: fc.constant('remove-service' as const), namespace, name }),
  fc.record({ type: fc.constant('put-pod' as const), namespace, name, labels }),
  fc.record({ type: fc.constant('remove-pod' as const), namespace, name }),
);

/** By looking at all Pods and all Services. */
class Naive {
  readonly pods = new Map<string, ModulePod>();
  readonly services = new Map<string, { namespace: string; selector: Labels }>();

  selects(key: string, pod: ModulePod): boolean {
    const service = this.services.get(key);
    if (service === undefined || service.namespace !== pod.namespace) return false;
    const pairs = Object.entries(service.selector);
    return (
      pairs.length > 0 && pairs.every(([label, wanted]) => new Map(Object.entries(pod.labels)).get(label) === wanted)
    );
  }

  servicesOf(pod: ModulePod | undefined): string[] {
    return pod === undefined ? [] : [...this.services.keys()].filter((key) => this.selects(key, pod)).sort();
  }

  podsOf(key: string): string[] {
    return [...this.pods.values()]
      .filter((pod) => this.selects(key, pod))
      .map(objectKey)
      .sort();
  }
}

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Does the same to both, and compares what is said to have changed. */
function apply(one: Change, selections: Selections, naive: Naive): void {
  const key = `${one.namespace}/${one.name}`;
  const pod = naive.pods.get(key);
  const before = naive.servicesOf(pod);
  if (one.type === 'put-service') {
    naive.services.set(key, { namespace: one.namespace, selector: one.labels });
    const ofNamespace = [...naive.pods.values()].filter(({ namespace: of }) => of === one.namespace);
    selections.putService({ ...one, selector: one.labels }, () => ofNamespace);
  } else if (one.type === 'remove-service') {
    expect(selections.removeService(key)).toBe(naive.services.delete(key));
  } else if (one.type === 'put-pod') {
    const next = modulePod(one.namespace, one.name, one.labels);
    naive.pods.set(key, next);
    const concerned = new Set([...before, ...naive.servicesOf(next)]);
    expect([...selections.putPod(next)].sort()).toEqual([...concerned].sort());
  } else {
    naive.pods.delete(key);
    expect([...selections.removePod(pod ?? modulePod(one.namespace, one.name, {}))].sort()).toEqual(before);
  }
}

function compare(selections: Selections, naive: Naive): void {
  for (const key of naive.services.keys())
    expect([...(selections.podsOf(key) ?? [])].map(objectKey).sort()).toEqual(naive.podsOf(key));
  for (const pod of naive.pods.values()) expect([...selections.servicesOf(pod)].sort()).toEqual(naive.servicesOf(pod));
}

describe('the Pods that Services select', () => {
  it('are those that a look at all of them finds, whatever comes, changes and goes', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const [selections, naive] = [new Selections(), new Naive()];
        for (const one of changes) {
          apply(one, selections, naive);
          compare(selections, naive);
        }
        for (const key of naive.services.keys()) selections.removeService(key);
        expect(selections.size).toBe(0);
      }),
    );
  });

  it('leave nothing behind when they go, nor do Services', () => {
    const selections = new Selections();
    const pod = modulePod('t1', 'a', { app: 'shop' });
    selections.putService({ namespace: 't1', name: 'shop', selector: { app: 'shop' } }, () => []);
    expect(selections.size).toBe(2);
    selections.putPod(pod);
    expect(selections.size).toBe(3);
    selections.removePod(pod);
    expect(selections.size).toBe(2);
    selections.removeService('t1/shop');
    expect(selections.size).toBe(0);
  });

  it('are not looked for again where a Service keeps its selector', () => {
    const selections = new Selections();
    const service = { namespace: 't1', name: 'shop' };
    let looks = 0;
    const podsOfNamespace = (): ModulePod[] => {
      looks++;
      return [];
    };
    selections.putService({ ...service, selector: { app: 'shop' } }, podsOfNamespace);
    selections.putService({ ...service, selector: { app: 'shop' } }, podsOfNamespace);
    expect(looks).toBe(1);
    selections.putService({ ...service, selector: { app: 'cart' } }, podsOfNamespace);
    expect(looks).toBe(2);
    expect(selections.podsOf('t1/cart')).toBeUndefined();
  });
});
