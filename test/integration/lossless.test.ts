import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moduleWorkload } from '../support/manifests.ts';
import { ModuleRig } from '../support/module-rig.ts';
import { isReady, pods } from '../support/observe.ts';
import { nextSecond } from '../support/pod-life.ts';
import { Spectator } from '../support/spectator.ts';

const BASES = ['base-1', 'base-2', 'base-3'];
const POLL_MS = 50;

let rig: ModuleRig;

beforeAll(async () => {
  rig = await ModuleRig.start({ count: BASES.length, activateNewModule: true, installMs: 300, uninstallMs: 100 });
});

afterAll(() => rig?.stop());

/** Calls biz1 on every base, each 50 ms and whenever a command ends: which calls would have failed? */
class Client {
  readonly failures: string[] = [];
  calls = 0;
  readonly #timer = setInterval(() => this.#call('polled'), POLL_MS);
  readonly #unsubscribe = rig.fleet.history.subscribe(({ command, outcome }) => this.#call(`${command} ${outcome}`));

  stop(): void {
    clearInterval(this.#timer);
    this.#unsubscribe();
  }

  #call(when: string): void {
    for (const identity of BASES) {
      this.calls += 1;
      const modules = rig.modulesOf(identity);
      if (!modules.some((line) => /^biz1:.* ACTIVATED$/.test(line))) {
        this.failures.push(`${identity} at ${when}: ${modules.join(', ')}`);
      }
    }
  }
}

async function deploy(version: string): Promise<void> {
  await rig.world.controlPlane.apply(moduleWorkload('biz1', [{ name: 'biz1', version }], { replicas: BASES.length }));
  await eventually(async () => {
    const found = await pods(rig.admin, 'app=biz1');
    expect(found.filter(isReady).map(({ metadata }) => metadata.labels?.version)).toEqual(BASES.map(() => version));
    expect(found).toHaveLength(BASES.length);
  });
}

describe('A-004-4 lossless: an update on bases with activate.new.module', () => {
  it('fails no call at any time, and on each base takes the old Pod out before the new one comes in', async () => {
    await deploy('1.0.0');
    await nextSecond();
    const mark = rig.fleet.history.mark();
    const watch = await Spectator.watch(rig.admin, '/api/v1/namespaces/default/pods');
    const client = new Client();
    await deploy('2.0.0');
    client.stop();
    watch.stop();
    expect(client.failures).toEqual([]);
    expect(client.calls).toBeGreaterThan(10 * BASES.length);

    for (const identity of BASES) {
      const seen = (version: string) =>
        watch.sightings.filter(
          ({ nodeName, labels }) => nodeName === `vnode.${identity}` && labels.version === version,
        );
      const oldOut = seen('1.0.0').find(({ ready }) => ready === 'False');
      const newIn = seen('2.0.0').find(({ ready }) => ready === 'True');
      expect(oldOut?.resourceVersion).toBeLessThan(newIn?.resourceVersion ?? 0);

      const commands = rig.fleet.history.records({ base: identity, bizName: 'biz1', since: mark });
      expect(commands.map(({ command, bizVersion, outcome }) => `${command} ${bizVersion} ${outcome}`)).toEqual([
        'installBiz 2.0.0 executed',
        'uninstallBiz 1.0.0 executed',
      ]);
      expect(commands[1]?.stateAtReceipt).toBe('DEACTIVATED');
      expect(rig.modulesOf(identity)).toEqual(['biz1:2.0.0 ACTIVATED']);
    }
  });
});
