import type { Clock } from '../clock.ts';
import { type ErrorCode, messageOf } from '../errors.ts';
import { podSubject } from '../kube/events/event-object.ts';
import type { EventRecorder } from '../kube/events/event-recorder.ts';
import { objectKey } from '../kube/watch/informer-types.ts';
import type { Logger } from '../logger.ts';
import { MAX_RECORDS, SEND_AGAIN_MS } from '../module/module-ledger.ts';
import { type ModuleCommand, type ModuleKey, moduleKeyOf } from '../tunnel/module.ts';
import { isUnsent, type Tunnel } from '../tunnel/tunnel.ts';
import type { PlannedCommand } from './base-plan.ts';
import type { LedBase } from './led-base.ts';

export interface CommandSenderOptions {
  readonly recorder: EventRecorder;
  /** Looks at a base again, when a command could not be sent. */
  readonly enqueueAfter: (nodeName: string, delayMs: number) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The event of a command; the Pod's status reports its end. */
export const COMMAND_EVENTS: Readonly<Record<ModuleCommand, readonly [reason: string, verb: string]>> = {
  install: ['Pulling', 'Installing'],
  uninstall: ['Killing', 'Uninstalling'],
  switch: ['Switching', 'Activating'],
};

/** Sends the planned commands and records them in the ledger. */
export class CommandSender {
  readonly #options: CommandSenderOptions;

  constructor(options: CommandSenderOptions) {
    this.#options = options;
  }

  /** Nothing is sent while the link is down: a later plan has the command again. */
  send(base: LedBase, tunnel: Tunnel, planned: PlannedCommand): void {
    const { clock, logger, recorder } = this.#options;
    if (!tunnel.isUp()) return;
    const { command, pod } = planned;
    const id = command === 'install' ? planned.spec : planned.id;
    const module = moduleKeyOf(id);
    if (!base.ledger.hasRoomFor([id])) {
      this.#refuse(base, module);
      return;
    }
    logger.info({ node: base.nodeName, module, pod: pod && objectKey(pod) }, `sending ${command}`);
    if (command === 'install') base.ledger.installSent(planned.spec, clock.now());
    else base.ledger.commandSent(command, id, clock.now(), planned.isReturning);
    if (pod) {
      const [reason, verb] = COMMAND_EVENTS[command];
      recorder.event(podSubject(pod), 'Normal', reason, `${verb} module ${module}`);
    }
    handOver(tunnel, base, planned).catch((error: unknown) => {
      logger.warn({ node: base.nodeName, module, command, reason: messageOf(error) }, 'command could not be sent');
      base.ledger.sendFailed(id, !isUnsent(error), clock.now());
      this.#options.enqueueAfter(base.nodeName, SEND_AGAIN_MS);
    });
  }

  /** Its Pod waits until there is room in the ledger. */
  #refuse({ nodeName, reports }: LedBase, module: ModuleKey): void {
    const admitted = reports.admit(this.#options.clock.now());
    if (admitted === undefined) return;
    const code: ErrorCode = 'Base.TooManyModules';
    const reason = `at most ${MAX_RECORDS} modules are known of one base`;
    this.#options.logger.warn({ node: nodeName, module, code, reason, ...admitted }, 'command is not sent');
  }
}

function handOver(tunnel: Tunnel, { address }: LedBase, planned: PlannedCommand): Promise<void> {
  if (planned.command === 'install') return tunnel.installModule(address, planned.spec);
  if (planned.command === 'uninstall') return tunnel.uninstallModule(address, planned.id);
  return tunnel.switchModule(address, planned.id);
}
