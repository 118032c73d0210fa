import { describe, expect, it } from 'vitest';
import type { ModuleSpec } from '../../../../../src/platform/catalog/module/module.ts';
import { endpointNameOf, type ResolveInput, resolve } from '../../../../../src/platform/catalog/serve/resolve.ts';

const NAME = 'Shop.cart.http';
const module = { spec: { ports: [{ name: 'http', port: 8080 }] } as ModuleSpec };
const ready = (podIP: string | undefined) => ({ podIP, problem: undefined });
const upstream = { host: 'old.example.com', port: 9000 };

function resolved(input: Partial<ResolveInput>) {
  return resolve({ name: NAME, module: undefined, pods: [], config: undefined, ...input });
}

describe('a name', () => {
  it('is that of the Ready Pods of a Module with the port, each address once', () => {
    const failing = { podIP: '10.0.0.9', problem: { reason: 'CrashLoopBackOff' } };
    const pods = [ready('10.0.0.2'), failing, ready('10.0.0.1'), ready(undefined), ready('10.0.0.2')];
    const common = { port: 8080, protocol: 'TCP', timeoutMs: 6_000 };
    expect(resolved({ module, pods, config: { upChain: { [NAME]: [upstream] } } })).toEqual({
      name: NAME,
      source: 'Module',
      endpoints: [
        { host: '10.0.0.1', ...common },
        { host: '10.0.0.2', ...common },
      ],
    });
  });

  it('is nobody’s while no Pod of its Module serves', () => {
    expect(resolved({ module, config: { upChain: { [NAME]: [upstream], default: [upstream] } } })).toEqual({
      name: NAME,
      source: 'Module',
      endpoints: [],
    });
  });

  it('is that of upChain where no Module has the port, else that of its default', () => {
    const own = { host: '10.9.9.9', port: 1, protocol: 'UDP' as const, timeoutMs: 3_000 };
    const upChain = { [NAME]: [own], default: [upstream] };
    for (const one of [
      undefined,
      { spec: {} as ModuleSpec },
      { spec: { ports: [{ name: 'rpc', port: 1 }] } as ModuleSpec },
    ])
      expect(resolved({ module: one, config: { upChain } })).toEqual({
        name: NAME,
        source: 'UpChain',
        endpoints: [own],
      });
    expect(resolved({ name: 'tars.config.Obj', config: { upChain } })).toEqual({
      name: 'tars.config.Obj',
      source: 'Default',
      endpoints: [{ ...upstream, protocol: 'TCP', timeoutMs: 6_000 }],
    });
  });

  it('is unknown without a default, also one that every object has', () => {
    for (const config of [undefined, {}, { upChain: {} }]) {
      expect(resolved({ config })).toBeUndefined();
      expect(resolved({ name: 'constructor', config })).toBeUndefined();
    }
  });

  it.each([
    ['Shop.cart.http', { app: 'Shop', module: 'cart', port: 'http' }],
    ['shop.my-cart.h2', { app: 'shop', module: 'my-cart', port: 'h2' }],
    ['shop.cart', undefined],
    ['shop.cart.http.x', undefined],
    ['9shop.cart.http', undefined],
    ['shop..http', undefined],
    ['shop.Cart.http', undefined],
  ])('of three parts %s', (name, parts) => {
    expect(endpointNameOf(name)).toEqual(parts);
  });
});
