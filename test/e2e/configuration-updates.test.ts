import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { ReadyEndpoints } from '../../samples/jvm/ready-endpoints.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from '../support/eventually.ts';
import { JavaCatalog } from '../support/java-catalog.ts';
import { JavaWorld } from '../support/java-world.ts';
import { Caller, type Target } from '../support/traffic/caller.ts';

const API_VERSION = 'platform.koupleless.io/v1alpha1';
const CALLS_PER_SECOND = 50;
/** Calls after the last step: what goes wrong late is seen too. */
const LATER_CALLS = 2 * CALLS_PER_SECOND;
/** The default of the controller; worlds of tests have 0. */
const PRE_STOP_SLEEP_SECONDS = '2';
const NAME = 'shop-shop';

let java: JavaWorld;
let catalog: JavaCatalog;
let bases: JvmBase[];

beforeAll(async () => {
  java = await JavaWorld.start({ PRE_STOP_SLEEP_SECONDS });
  catalog = await JavaCatalog.start(java);
  await catalog.startCatalog();
  bases = await java.startBases({
    'java-1': { tunnel: 'http' },
    'java-2': { tunnel: 'http' },
    'java-3': { tunnel: 'mqtt' },
  });
});

afterAll(async () => {
  await catalog?.stop();
  await java?.stop();
});

function moduleOf(module: 'shop' | 'price', spec: object) {
  const { image } = java.module(module);
  return {
    apiVersion: API_VERSION,
    kind: 'Module',
    metadata: { name: `shop-${module}`, namespace: 'default' },
    spec: { app: 'Shop', module, base: { name: 'base' }, release: { id: 'r1', image }, ...spec },
  };
}

/** The web module with this number of copies, and its configuration. */
async function applyShop(replicas: number, color: string): Promise<void> {
  const target = { kind: 'Module', app: 'Shop', name: 'shop' };
  const config = { target, file: 'application.yaml', format: 'yaml', content: contentOf(color) };
  await catalog.apply([
    { apiVersion: API_VERSION, kind: 'ModuleConfig', metadata: { name: NAME, namespace: 'default' }, spec: config },
    moduleOf('shop', {
      ports: [{ name: 'http', port: 8080 }],
      configs: [{ name: NAME, follow: 'Immediately' }],
      deploy: { replicas },
    }),
  ]);
}

function contentOf(color: string): string {
  return `shop: { color: ${color} }\nprice: { version: leaked }`;
}

function targetOf(base: JvmBase | undefined, path: string): Target | undefined {
  if (base === undefined) return undefined;
  const { hostname: address, port, host } = new URL(base.urlOf(path));
  return { address, port: Number(port), path, host };
}

function oneOf<T>(all: readonly T[]): T | undefined {
  return all[Math.floor(Math.random() * all.length)];
}

/** Calls each second on bases at random: `shop` where its Service has an endpoint that is ready, and `price` on all. */
class Calls {
  readonly endpoints: ReadyEndpoints;
  readonly shop: Caller;
  readonly price: Caller;

  private constructor(endpoints: ReadyEndpoints) {
    this.endpoints = endpoints;
    const ready = () => bases.filter(({ identity }) => endpoints.nodes().has(nodeNameOf(identity)));
    this.shop = new Caller(CALLS_PER_SECOND, () => targetOf(oneOf(ready()), '/shop/color'));
    this.price = new Caller(CALLS_PER_SECOND, () => targetOf(oneOf(bases), '/price'));
  }

  /** `count`: of the endpoints that are ready. */
  static async start(count: number): Promise<Calls> {
    const endpoints = new ReadyEndpoints(java.admin, { service: NAME });
    await endpoints.start();
    await eventually(() => expect(endpoints.nodes().size).toBe(count));
    return new Calls(endpoints);
  }

  async further(count = LATER_CALLS): Promise<void> {
    const wanted = this.shop.calls + count;
    await eventually(() => expect(this.shop.calls).toBeGreaterThanOrEqual(wanted));
  }

  async stop(): Promise<void> {
    await Promise.all([this.shop.stop(), this.price.stop()]);
    await this.endpoints.stop();
  }
}

async function untilColor(color: string, count: number): Promise<void> {
  await eventually(async () => {
    const answers = await Promise.all(bases.map((base) => base.get('/shop/color')));
    expect(answers.filter(({ status, text }) => status === 200 && text === color)).toHaveLength(count);
  }, 120_000);
  await eventually(async () => {
    const { metadata, status } = await catalog.module(NAME);
    expect(status).toMatchObject({
      observedGeneration: metadata.generation,
      readyReplicas: count,
      updatedReplicas: count,
    });
  }, 120_000);
}

beforeEach(async () => {
  await catalog.apply([moduleOf('price', { deploy: { replicas: bases.length } })]);
  await catalog.ready('price', bases);
});

describe('a change of configuration under calls', () => {
  it('fails none with a copy on each of three bases, there and back; neighbours see nothing', async () => {
    await applyShop(bases.length, 'blue');
    await catalog.ready('shop', bases);
    const calls = await Calls.start(bases.length);
    await calls.further();
    await catalog.changeConfig(NAME, contentOf('green'));
    await untilColor('green', bases.length);
    await calls.further();
    await catalog.changeModule(NAME, { rollbackTo: {} });
    await untilColor('blue', bases.length);
    await calls.further();
    await calls.stop();
    expect(calls.shop.failures).toEqual([]);
    expect(calls.price.failures).toEqual([]);
    expect([...calls.shop.versions.keys()].sort()).toEqual(['blue', 'green']);
    expect([...calls.price.versions.keys()]).toEqual(['1.0.0']);
    console.log(`configuration: ${calls.shop.calls} calls of shop and ${calls.price.calls} of price, none failed`);
    await catalog.delete(NAME, 'shop-price');
  });

  it('takes the only copy out for a time, after which it has the new value; neighbours see nothing', async () => {
    await applyShop(1, 'blue');
    await untilColor('blue', 1);
    const calls = await Calls.start(1);
    const base = bases.find(({ identity }) => calls.endpoints.nodes().has(nodeNameOf(identity)));
    const direct = new Caller(CALLS_PER_SECOND, () => targetOf(base, '/shop/color'));
    await calls.further();
    await catalog.changeConfig(NAME, contentOf('green'));
    await untilColor('green', 1);
    await calls.further();
    await Promise.all([calls.stop(), direct.stop()]);
    const gaps = [calls.shop, direct].map(({ failures }) => {
      const [started, ended] = [failures.map((one) => one.startedAt), failures.map((one) => one.endedAt)];
      return Math.max(...ended) - Math.min(...started);
    });
    console.log(`configuration: with one copy no endpoint for ${gaps[0]} ms, no module for ${gaps[1]} ms`);
    for (const gap of gaps) expect(gap).toBeGreaterThan(0);
    expect([...calls.shop.versions.keys()]).toEqual(['blue', 'green']);
    expect(calls.price.failures).toEqual([]);
    expect([...calls.price.versions.keys()]).toEqual(['1.0.0']);
  });
});
