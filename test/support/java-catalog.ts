import { expect } from 'vitest';
import type { KubeObject } from '../../samples/control-plane/api-client.ts';
import type { JvmBase } from '../../samples/jvm/jvm-base.ts';
import type { PodObject } from '../../src/kube/objects.ts';
import { nodeNameOf } from '../../src/labels.ts';
import { eventually } from './eventually.ts';
import type { JavaWorld } from './java-world.ts';
import { isReady, pods } from './observe.ts';
import { Platform } from './platform.ts';
import type { ControllerProcess } from './world.ts';

const NAMESPACED = '/apis/platform.koupleless.io/v1alpha1/namespaces/default';
const CONTROLLERS = ['rollout', 'catalog'];

/** Modules and their configuration in the namespace `default` of a world with real JVMs. */
export class JavaCatalog {
  readonly #java: JavaWorld;
  readonly #platform: Platform;

  private constructor(java: JavaWorld, platform: Platform) {
    this.#java = java;
    this.#platform = platform;
  }

  /** Without the catalog itself. The controllers run in processes of their own, so that a test can stop one. */
  static async start(java: JavaWorld): Promise<JavaCatalog> {
    const platform = await Platform.install(java.world, CONTROLLERS);
    await platform.optIn();
    // It installs the kind of the workloads that the catalog watches.
    await platform.start('rollout', 'rollout');
    return new JavaCatalog(java, platform);
  }

  /** Resolves when the catalog leads. `env`: its variables. */
  async startCatalog(env: Record<string, string> = {}): Promise<ControllerProcess> {
    const controller = await this.#platform.start('catalog', 'catalog', env);
    await controller.line(({ msg, lease }) => msg === 'started leading' && lease === 'platform-catalog');
    return controller;
  }

  stop(): Promise<void> {
    return this.#platform.stop();
  }

  apply(manifests: Parameters<JavaWorld['world']['controlPlane']['apply']>[0]): Promise<unknown> {
    return this.#java.world.controlPlane.apply(manifests);
  }

  module(name: string): Promise<KubeObject> {
    return this.#java.admin.get(`${NAMESPACED}/modules/${name}`);
  }

  changeModule(name: string, spec: object): Promise<unknown> {
    return this.#java.admin.mergePatch(`${NAMESPACED}/modules/${name}`, { spec });
  }

  changeConfig(name: string, content: string): Promise<unknown> {
    return this.#java.admin.mergePatch(`${NAMESPACED}/moduleconfigs/${name}`, { spec: { content } });
  }

  podsOf(module: string): Promise<PodObject[]> {
    return pods(this.#java.admin, `module.koupleless.io/name=${module}`);
  }

  /** Until each of the bases has a Pod of the module that is Ready, and there is no other Pod of it. */
  async ready(module: string, bases: readonly Pick<JvmBase, 'identity'>[]): Promise<void> {
    const wanted = bases.map(({ identity }) => `${nodeNameOf(identity)} Ready`).sort();
    await eventually(async () => {
      const found = await this.podsOf(module);
      expect(found.map((pod) => `${pod.spec?.nodeName} ${isReady(pod) ? 'Ready' : ''}`).sort()).toEqual(wanted);
    }, 120_000);
  }

  /** Deletes Modules and waits until nothing is left of them. */
  async delete(...names: readonly string[]): Promise<void> {
    for (const name of names) await this.#java.admin.delete(`${NAMESPACED}/modules/${name}`);
    await eventually(async () =>
      expect((await pods(this.#java.admin)).map(({ metadata }) => metadata.name)).toEqual([]),
    );
  }
}
