import { elapsedSpaceOf, healthResponse, type MetaspaceOverride, metaspaceOf } from './health.ts';
import { runBatch } from './install-batch.ts';
import { InstallRun } from './install-run.ts';
import {
  type ArkletOptions,
  type BizRequest,
  type BizState,
  type CommandName,
  type InstallPlan,
  identityOf,
  type ModuleKey,
  type Reply,
  type SimulatedModule,
} from './model.ts';
import { ProcessTimers } from './process-timers.ts';
import * as responses from './responses.ts';
import { installTargetOf, namedTargetOf } from './validation.ts';

/**
 * The agent inside one process of a base: its modules and what commands do to them. Knows no transport.
 * A command's promise never rejects; after `terminate` it resolves with outcome `died` and no response.
 */
export class Arklet {
  readonly #options: ArkletOptions;
  readonly #startedAt: number;
  readonly #timers: ProcessTimers;
  readonly #modules = new Map<string, SimulatedModule>();
  /** Commands in work by module identity. Emptied as they end. */
  readonly #unfinished = new Map<string, CommandName>();
  #metaspace: MetaspaceOverride = {};

  constructor(options: ArkletOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
    this.#timers = new ProcessTimers(options.clock);
  }

  /** Ends all work without an answer, as the end of the process does. */
  terminate(): void {
    this.#timers.terminate();
  }

  modules(): SimulatedModule[] {
    return [...this.#modules.values()].map((module) => ({ ...module }));
  }

  /** RESOLVED also while a command that has not listed the module yet is in work. */
  stateOf(module: ModuleKey): BizState | undefined {
    const state = this.#modules.get(identityOf(module))?.state;
    return state ?? (this.#unfinished.get(identityOf(module)) === 'installBiz' ? 'RESOLVED' : undefined);
  }

  async installBiz(request: BizRequest, plan: InstallPlan = {}): Promise<Reply> {
    const target = installTargetOf(request);
    if ('invalid' in target) return responses.invalidCommand(target.invalid);
    return this.#exclusively('installBiz', target, () => this.#installRun().answer(request, target, plan));
  }

  /** `failure`: the Java exception that ends the uninstall; the module stays as it was. */
  async uninstallBiz(request: BizRequest, failure?: string): Promise<Reply> {
    const target = namedTargetOf(request);
    if ('invalid' in target) return responses.invalidCommand(target.invalid);
    return this.#exclusively('uninstallBiz', target, () => this.#uninstall(target, failure));
  }

  /** Makes an installed version the active one of its name. `failure`: the Java exception that comes instead. */
  async switchBiz(request: BizRequest, failure?: string): Promise<Reply> {
    const target = namedTargetOf(request);
    if ('invalid' in target) return responses.invalidCommand(target.invalid);
    return this.#exclusively('switchBiz', target, async () =>
      failure === undefined ? this.#switchTo(target) : responses.commandThrew(failure),
    );
  }

  /** Installs all modules side by side; `onReply` tells what became of each. */
  batchInstallBiz(
    requests: readonly BizRequest[],
    planOf: (request: BizRequest) => InstallPlan,
    onReply: (index: number, reply: Reply) => void,
  ): Promise<Reply> {
    // The agent locks a batch under the identity of its missing name and version, and none of its modules.
    const lock: ModuleKey = { bizName: 'null', bizVersion: 'null' };
    return this.#exclusively('batchInstallBiz', lock, () =>
      runBatch(requests, (request, target) => this.#installRun().run(request, target, planOf(request)), {
        onReply,
        elapsedSpace: () => elapsedSpaceOf(this.#options.random),
      }),
    );
  }

  health(): Reply {
    const { clock, random, name, version, maxMetaspace } = this.#options;
    const modules = this.modules();
    const metaspace = metaspaceOf({
      moduleCount: modules.length,
      maxBytes: maxMetaspace,
      override: this.#metaspace,
      random,
    });
    const runTimeSeconds = Math.round(clock.now() - this.#startedAt) / 1000;
    return { outcome: 'executed', response: healthResponse({ name, version, runTimeSeconds, metaspace, modules }) };
  }

  setMetaspace(override: MetaspaceOverride): void {
    this.#metaspace = { ...this.#metaspace, ...override };
  }

  /** Puts a module into the table without a command. */
  placeModule(module: ModuleKey, state: BizState = 'ACTIVATED'): void {
    const bizUrl = `file:///app/${identityOf(module)}.jar`;
    this.#modules.set(identityOf(module), { ...module, state, bizUrl, tempWorkDir: '/tmp/sofa-ark/placed' });
  }

  /** Changes a module's state on its own; `gone` takes it out of the list. False when it is not listed. */
  crashModule(module: ModuleKey, to: BizState | 'gone'): boolean {
    const found = this.#modules.get(identityOf(module));
    if (!found) return false;
    if (to === 'gone') this.#modules.delete(identityOf(module));
    else found.state = to;
    return true;
  }

  async #exclusively(command: CommandName, target: ModuleKey, work: () => Promise<Reply>): Promise<Reply> {
    const identity = identityOf(target);
    const unfinished = this.#unfinished.get(identity);
    if (unfinished) {
      return { outcome: 'refused:conflict', response: responses.commandConflict(target, command, unfinished) };
    }
    this.#unfinished.set(identity, command);
    try {
      return await work();
    } finally {
      this.#unfinished.delete(identity);
    }
  }

  #installRun(): InstallRun {
    return new InstallRun(this.#options, this.#modules, this.#timers);
  }

  #switchTo(target: ModuleKey): Reply {
    const module = this.#modules.get(identityOf(target));
    const data = responses.switched(target, module?.state);
    if (!module || data.code !== 'SUCCESS') {
      const outcome = data.code === 'NOT_FOUND_BIZ' ? 'refused:NOT_FOUND_BIZ' : 'failed';
      return { outcome, response: { code: 'FAILED', message: 'switch biz not success!', data } };
    }
    for (const other of this.#modules.values()) {
      if (other.bizName === target.bizName && other.state === 'ACTIVATED') other.state = 'DEACTIVATED';
    }
    module.state = 'ACTIVATED';
    return { outcome: 'executed', response: { code: 'SUCCESS', data } };
  }

  async #uninstall(target: ModuleKey, failure: string | undefined): Promise<Reply> {
    const module = this.#modules.get(identityOf(target));
    if (!module) {
      const data = responses.notFoundBiz(target);
      return {
        outcome: 'refused:NOT_FOUND_BIZ',
        response: { code: 'FAILED', message: 'uninstall biz not success!', data },
      };
    }
    if (module.state === 'RESOLVED') return responses.commandThrew(responses.STOP_OF_RESOLVED);
    if (module.isStopping) return responses.commandThrew(responses.secondStopOf(module));
    const { state } = module;
    module.state = 'DEACTIVATED';
    module.isStopping = true;
    if (!(await this.#timers.wait(this.#options.uninstallMs))) return { outcome: 'died' };
    if (failure !== undefined) {
      module.state = state;
      module.isStopping = false;
      return responses.commandThrew(failure);
    }
    this.#modules.delete(identityOf(target));
    return { outcome: 'executed', response: { code: 'SUCCESS', data: responses.uninstalled(target) } };
  }
}
