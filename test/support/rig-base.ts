import type { BaseInfo } from '../../src/tunnel/base.ts';
import {
  type ModuleCommand,
  type ModuleId,
  type ModuleKey,
  type ModuleSpec,
  type ModuleState,
  moduleKeyOf,
  type OperationResult,
} from '../../src/tunnel/module.ts';
import type { TunnelName } from '../../src/tunnel/tunnel.ts';
import { isSibling, type makeHealth, makeResult } from './builders.ts';

/** A base of a CoreRig: it beats each 10 s (HTTP: 12 s), and answers at once what it is asked, unless told otherwise. */
export interface RigBase {
  info: BaseInfo;
  isSilent: boolean;
  answersLists: boolean;
  answersHealth: boolean;
  /** Whether commands are executed and answered; without, a test answers by hand. */
  answersCommands: boolean;
  /** Where it speaks, and is spoken to. */
  tunnel: TunnelName;
  /** Where its posts over HTTP come from, when not from its own address; its answers name it then. */
  sender?: string;
  /** `-Dactivate.new.module`: of two versions of a name the one that was installed last is active. */
  activatesNew: boolean;
  /** What becomes of a `switch`: done, refused with words, or answered as done while nothing is. */
  switches: 'done' | 'refused' | 'pretended';
  /** With the run time that it had at `startedAt`. */
  health: ReturnType<typeof makeHealth>;
  startedAt: number;
  readonly modules: Map<ModuleKey, ModuleState>;
}

/** As arklet does it: of two versions of a name one is active, by default the one that was there first. */
export function execute(
  base: Pick<RigBase, 'modules' | 'activatesNew' | 'switches'>,
  command: ModuleCommand,
  spec: ModuleId & Pick<ModuleSpec, 'strategy'>,
): OperationResult {
  const key = moduleKeyOf(spec);
  const { modules } = base;
  const siblings = (): ModuleKey[] => [...modules.keys()].filter((other) => isSibling(other, key));
  const activate = (): void => {
    for (const other of siblings()) if (modules.get(other) === 'ACTIVATED') modules.set(other, 'DEACTIVATED');
    modules.set(key, 'ACTIVATED');
  };
  if (command === 'uninstall') {
    modules.delete(key);
    return makeResult(command, key);
  }
  if (command === 'switch') {
    if (base.switches === 'refused') return makeResult(command, key, { outcome: 'failed', message: 'no' });
    if (base.switches === 'done' && modules.has(key)) activate();
    return makeResult(command, key);
  }
  if (spec.strategy === 'uninstallThenInstall') for (const other of siblings()) modules.delete(other);
  const hasActive = siblings().some((other) => modules.get(other) === 'ACTIVATED');
  if (!hasActive || base.activatesNew) activate();
  else modules.set(key, 'DEACTIVATED');
  return makeResult(command, key, { state: modules.get(key) });
}
