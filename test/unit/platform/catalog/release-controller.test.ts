import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControllerError } from '../../../../src/errors.ts';
import { PODS } from '../../../../src/kube/resource.ts';
import { CATALOG } from '../../../../src/platform/catalog/catalog.ts';
import { MODULES, type ModuleObject } from '../../../../src/platform/catalog/module/module.ts';
import {
  PLATFORM_CONFIGS,
  type PlatformConfigObject,
} from '../../../../src/platform/catalog/platform-config/platform-config.ts';
import {
  CACHED_MODULE_RELEASES,
  MODULE_RELEASES,
  type ModuleReleaseObject,
} from '../../../../src/platform/catalog/release/module-release.ts';
import { DEFINITIONS } from '../../../manifests/definitions.ts';
import { PlatformRig } from '../../../support/platform-rig.ts';

const KNOWN = DEFINITIONS.map(({ name }) => name);
const image = 'https://jars.example.com/cart-1.0.0-ark-biz.jar';

let rig: PlatformRig;

beforeEach(async () => {
  rig = new PlatformRig(CATALOG, KNOWN);
  await rig.start();
});

afterEach(() => rig.stop());

const release = () => rig.all(MODULE_RELEASES)[0] as ModuleReleaseObject;
const ids = (): string[] => release().spec.releases.map(({ id }) => id);
const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `r${from + index}`);

async function publish(names: readonly string[]): Promise<void> {
  const before = rig.all(MODULE_RELEASES)[0];
  const metadata = { ...before?.metadata, name: 'shop-cart', namespace: 'default' };
  await rig.put(MODULE_RELEASES, {
    ...before,
    metadata,
    spec: { releases: names.map((id) => ({ id, image })) },
  } as never);
}

async function limit(moduleRelease: number): Promise<void> {
  const metadata = { name: 'platform', namespace: 'default', generation: moduleRelease };
  await rig.put(PLATFORM_CONFIGS, { metadata, spec: { recordLimit: { moduleRelease } } } as never);
}

async function module(id: string): Promise<void> {
  const spec = { app: 'Shop', module: 'cart', base: { name: 'base' }, release: { id } };
  await rig.put(MODULES, { metadata: { name: 'shop-cart', namespace: 'default', generation: 1 }, spec } as never);
}

describe('a ModuleRelease', () => {
  it('says when a release was first seen and which are in use: by its Module, and by Pods that are left', async () => {
    await publish(['r1', 'r2', 'r3']);
    expect(Object.keys(release().status?.firstSeen ?? {})).toEqual(['r1', 'r2', 'r3']);
    expect(release().status?.inUse).toBeUndefined();
    await module('r2');
    expect(release().status?.inUse).toEqual(['r2']);
    const labels = {
      'virtual-kubelet.koupleless.io/component': 'module',
      'platform.koupleless.io/app': 'Shop',
      'module.koupleless.io/name': 'cart',
      'platform.koupleless.io/release': 'r1',
    };
    const pod = {
      metadata: { name: 'left', namespace: 'default', labels },
      spec: { containers: [{ name: 'cart', image }] },
    };
    await rig.put(PODS, pod as never);
    expect(release().status?.inUse).toEqual(['r1', 'r2']);
    await rig.remove(PODS, 'left');
    expect(release().status?.inUse).toEqual(['r2']);
  });

  it('loses its oldest releases beyond the limit of the namespace, and none that is in use', async () => {
    await module('r1');
    await publish(numbered(1, 20));
    expect(ids()).toHaveLength(20);
    await limit(10);
    expect(ids()).toEqual(['r1', ...numbered(12, 20)]);
    expect(rig.events).toContain('ModuleRelease Normal Pruned');
    expect(release().status?.inUse).toEqual(['r1']);
  });

  it('keeps the remarks and persons of the releases that stay, of which the memory has none', async () => {
    const releases = numbered(1, 12).map((id) => ({ id, image, remark: `about ${id}`, person: 'jo' }));
    await rig.put(MODULE_RELEASES, {
      metadata: { name: 'shop-cart', namespace: 'default' },
      spec: { releases },
    } as never);
    await limit(10);
    expect(release().spec.releases).toEqual(releases.slice(2));
    const cached = CACHED_MODULE_RELEASES.project(release(), {} as never);
    expect(JSON.stringify(cached)).not.toMatch(/about|jo/);
  });

  it('is written once a minute at most, though somebody puts the releases back again and again', async () => {
    await limit(10);
    await publish(numbered(1, 12));
    expect(ids()).toHaveLength(10);
    await publish(numbered(1, 12));
    expect(ids()).toHaveLength(12);
    await rig.rest(45);
    expect(ids()).toHaveLength(12);
    await rig.rest(20);
    expect(ids()).toHaveLength(10);
  });

  it('keeps a release that its Module asks for now, though the watch does not show that yet', async () => {
    await module('r12');
    await publish(numbered(1, 12));
    rig.changeRead(
      MODULES,
      (stored) => ({ ...stored, spec: { ...(stored as ModuleObject).spec, release: { id: 'r1' } } }) as never,
    );
    await limit(10);
    expect(ids()).toEqual(['r1', ...numbered(3, 12)]);
  });

  it('keeps all its releases while its Module cannot be read', async () => {
    await publish(numbered(1, 12));
    rig.changeRead(MODULES, () => {
      throw new ControllerError('Kube.ConnectionFailed', 'no answer');
    });
    await module('r12');
    await limit(10);
    expect(ids()).toHaveLength(12);
  });
});

describe('a PlatformConfig', () => {
  it('lists each application of its namespace once, and no longer when its last Module is gone', async () => {
    await limit(10);
    const apps = () => (rig.all(PLATFORM_CONFIGS)[0] as PlatformConfigObject).status?.apps.map(({ name }) => name);
    expect(apps()).toEqual([]);
    await module('r1');
    expect(apps()).toEqual(['Shop']);
    await rig.remove(MODULES, 'shop-cart');
    expect(apps()).toEqual([]);
  });
});
