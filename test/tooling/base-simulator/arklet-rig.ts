import { Arklet } from '../../../samples/base-simulator/arklet.ts';
import type { ArkletOptions, BizRequest, Reply } from '../../../samples/base-simulator/model.ts';
import { FakeClock } from '../../support/fake-clock.ts';

export function biz(
  bizName: string,
  bizVersion: string,
): Required<Pick<BizRequest, 'bizName' | 'bizVersion' | 'bizUrl'>> {
  return { bizName, bizVersion, bizUrl: `file:///app/${bizName}-${bizVersion}-ark-biz.jar` };
}

export const ONE = biz('biz1', '1');
export const TWO = biz('biz1', '2');

/** One arklet with a clock of its own. */
export class ArkletRig {
  readonly clock = new FakeClock();
  readonly arklet: Arklet;

  constructor(options: Partial<ArkletOptions> = {}) {
    const defaults = { name: 'base', version: '1.0.0', installMs: 800, uninstallMs: 100, maxMetaspace: -1 };
    const { clock } = this;
    this.arklet = new Arklet({ ...defaults, activateNewModule: false, clock, random: () => 0.5, ...options });
  }

  /** Lets time run until the command has ended. */
  async end(command: Promise<Reply>): Promise<Reply> {
    await this.clock.advanceAsync(10_000);
    return command;
  }

  states(): Record<string, string> {
    const modules = this.arklet.modules();
    return Object.fromEntries(modules.map((module) => [`${module.bizName}:${module.bizVersion}`, module.state]));
  }

  jvm(): Record<string, unknown> {
    return data(this.arklet.health()).healthData.jvm;
  }

  usedMetaspace(): number {
    return Number(this.jvm()['java used metaspace']);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into any part of an answer
export function data(reply: Reply): any {
  return reply.response?.data;
}
