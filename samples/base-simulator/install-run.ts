import { elapsedSpaceOf } from './health.ts';
import {
  type ArkletOptions,
  type BizRequest,
  type InstallPlan,
  identityOf,
  type ModuleKey,
  type Outcome,
  type Reply,
  type SimulatedModule,
} from './model.ts';
import type { ProcessTimers } from './process-timers.ts';
import * as responses from './responses.ts';
import { isMissingJar, missingFileTextOf } from './validation.ts';

/** `exception`: what the install throws inside the agent, class name first. */
export type InstallResult =
  | { outcome: Outcome; client: responses.ClientResponse }
  | { outcome: 'failed'; exception: string }
  | { outcome: 'died' };

/** One install on the module table of one process, in the order of the real agent. */
export class InstallRun {
  readonly #options: ArkletOptions;
  readonly #modules: Map<string, SimulatedModule>;
  readonly #timers: ProcessTimers;

  constructor(options: ArkletOptions, modules: Map<string, SimulatedModule>, timers: ProcessTimers) {
    this.#options = options;
    this.#modules = modules;
    this.#timers = timers;
  }

  async answer(request: BizRequest, target: ModuleKey, plan: InstallPlan): Promise<Reply> {
    const result = await this.run(request, target, plan);
    if ('exception' in result) return responses.commandThrew(result.exception);
    if (!('client' in result)) return { outcome: 'died' };
    const data = { ...result.client, elapsedSpace: this.#elapsedSpaceOf(result.outcome) };
    if (result.outcome === 'executed') return { outcome: 'executed', response: { code: 'SUCCESS', data } };
    return { outcome: result.outcome, response: { code: 'FAILED', message: 'install biz not success!', data } };
  }

  async run(request: BizRequest, target: ModuleKey, plan: InstallPlan): Promise<InstallResult> {
    const bizUrl = request.bizUrl ?? '';
    if (request.installStrategy === 'uninstallThenInstall') {
      const failure = await this.#uninstallAllOf(target.bizName);
      if (failure) return failure;
    }
    const found = plan.manifest ?? target;
    if (this.#modules.has(identityOf(found))) {
      return { outcome: 'refused:REPEAT_BIZ', client: responses.repeatBiz(found) };
    }
    if (isMissingJar(bizUrl)) {
      return { outcome: 'failed', exception: `java.io.FileNotFoundException: ${missingFileTextOf(bizUrl)}` };
    }
    return this.#start(found, bizUrl, plan);
  }

  #elapsedSpaceOf(outcome: Outcome): number {
    return outcome === 'executed' ? elapsedSpaceOf(this.#options.random) : 912;
  }

  /** The strategy uninstalls the version that it installs as well, and none of the versions is locked for it. */
  async #uninstallAllOf(bizName: string): Promise<InstallResult | undefined> {
    for (const module of [...this.#modules.values()].filter((candidate) => candidate.bizName === bizName)) {
      // Another command has uninstalled it since: ark finds none, and the strategy goes on.
      if (this.#modules.get(identityOf(module)) !== module) continue;
      if (module.state === 'RESOLVED') return { outcome: 'failed', exception: responses.STOP_OF_RESOLVED };
      if (module.isStopping) return { outcome: 'failed', exception: responses.secondStopOf(module) };
      module.state = 'DEACTIVATED';
      module.isStopping = true;
      if (!(await this.#timers.wait(this.#options.uninstallMs))) return { outcome: 'died' };
      this.#modules.delete(identityOf(module));
    }
    return undefined;
  }

  async #start(target: ModuleKey, bizUrl: string, plan: InstallPlan): Promise<InstallResult> {
    const { clock } = this.#options;
    const startedAt = clock.wallTime();
    const startedMs = clock.now();
    const stamp = startedAt.toISOString().replaceAll(/\D/g, '');
    const tempWorkDir = `/tmp/sofa-ark/${target.bizName}-${target.bizVersion}-${stamp}-unpack`;
    const module: SimulatedModule = { ...target, state: 'RESOLVED', bizUrl, tempWorkDir };
    this.#modules.set(identityOf(target), module);
    if (!(await this.#timers.wait(plan.installMs ?? this.#options.installMs))) return { outcome: 'died' };
    const exception = plan.failure ?? (plan.isBroken ? 'java.lang.RuntimeException: module did not start' : undefined);
    if (exception !== undefined) {
      // The agent uninstalls what failed to start, unless told to keep it.
      if (plan.isBroken) module.state = 'BROKEN';
      else this.#modules.delete(identityOf(target));
      return { outcome: 'failed', exception };
    }
    this.#activate(module);
    return { outcome: 'executed', client: responses.installed(module, clock.now() - startedMs, startedAt) };
  }

  #activate(module: SimulatedModule): void {
    const active = [...this.#modules.values()].find(
      (other) => other.bizName === module.bizName && other.state === 'ACTIVATED',
    );
    module.state = active && !this.#options.activateNewModule ? 'DEACTIVATED' : 'ACTIVATED';
    if (active && this.#options.activateNewModule) active.state = 'DEACTIVATED';
  }
}
