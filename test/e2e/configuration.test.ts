import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Version } from '../../samples/jvm/jars.ts';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import { JavaWorld } from '../support/java-world.ts';

/** Characters that a shell, JSON, a properties file or a kubelet would change. */
const SPECIAL = `"q" 's' \\ back\nline\ttab é 漢 😀 $HOME $(BIZ_VERSION) \`id\` %x% #h ,c;d =e &f <g>`;

let java: JavaWorld;
let bases: JvmBase[];

beforeAll(async () => {
  java = await JavaWorld.start();
  bases = await java.startBases({
    'java-http': { tunnel: 'http', jvmFlags: ['-Dshop.color=of-the-base'] },
    'java-mqtt': { tunnel: 'mqtt' },
  });
});

afterEach(() => java.clear());

afterAll(() => java?.stop());

function baseOver(tunnel: string): JvmBase {
  return bases.find((base) => base.tunnel === tunnel) as JvmBase;
}

async function installShop(base: JvmBase, version: Version, args: readonly string[]): Promise<void> {
  await java.create('shop', base, { ...java.module('shop', version), args });
  await java.ready('shop');
}

async function text(base: JvmBase, path: string): Promise<string> {
  return (await base.get(path)).text;
}

describe.each([
  { tunnel: 'http', colorWithoutArgs: 'of-the-base' },
  { tunnel: 'mqtt', colorWithoutArgs: 'grey' },
])('the args of a Pod, on a JVM over $tunnel', ({ tunnel, colorWithoutArgs }) => {
  it('reach @Value and @ConfigurationProperties of one module, win over jar and base, and reach no neighbour', async () => {
    const base = baseOver(tunnel);
    await java.create('price', base, java.module('price'));
    await java.ready('price');

    // price reads `price.version`, so a leak would change its answer.
    const json = JSON.stringify({ shop: { color: 'blue' }, price: { version: 'leaked' } });
    await installShop(base, '1.0.0', [`--spring.application.json=${json}`, '--shop.version=of-the-args']);
    expect(await text(base, '/shop/version')).toBe('of-the-args');
    expect(await text(base, '/shop/color')).toBe('blue');
    expect(await text(base, '/price')).toBe('1.0.0');

    await java.remove('shop');
    await installShop(base, '2.0.0', ['--shop.color=green', '--price.version=leaked']);
    expect(await text(base, '/shop/version')).toBe('2.0.0');
    expect(await text(base, '/shop/color')).toBe('green');
    expect(await text(base, '/price')).toBe('1.0.0');

    await java.remove('shop');
    // The jar has grey. A system property of the base wins over the jar, and the args above won over both.
    await installShop(base, '2.0.0', []);
    expect(await text(base, '/shop/color')).toBe(colorWithoutArgs);

    // A neighbour that is installed after them gets none of them either, but its own.
    await java.remove('price');
    await java.create('price', base, { ...java.module('price', '2.0.0'), args: ['--shop.color=leaked'] });
    await java.ready('price');
    expect(await text(base, '/price')).toBe('2.0.0');
    expect(await text(base, '/shop/color')).toBe(colorWithoutArgs);
  });

  it.each([
    ['--key=value', (color: string) => `--shop.color=${color}`],
    [
      '--spring.application.json',
      (color: string) => `--spring.application.json=${JSON.stringify({ shop: { color } })}`,
    ],
  ])('keep every character as %s, up to 60 KiB', async (_, argOf) => {
    const base = baseOver(tunnel);
    for (const color of [SPECIAL, 'x'.repeat(8 * 1024), 'y'.repeat(60 * 1024)]) {
      await installShop(base, '1.0.0', [argOf(color)]);
      expect(await text(base, '/shop/color')).toBe(color);
      await java.remove('shop');
    }
  });
});
