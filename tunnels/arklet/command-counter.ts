import type { Metrics } from '../../src/metrics.ts';
import { isUnsent, type TunnelName } from '../../src/tunnel/tunnel.ts';

const RESULTS = { sent: 'sent', notConnected: 'not_connected', failed: 'failed' } as const;

export interface CommandCounterOptions {
  readonly tunnel: TunnelName;
  /** arklet's words for all that the tunnel sends. */
  readonly commands: readonly string[];
  readonly metrics: Pick<Metrics, 'tunnelCommands'>;
}

/** Counts the commands of a tunnel by what became of them. */
export class CommandCounter {
  readonly #options: CommandCounterOptions;

  constructor(options: CommandCounterOptions) {
    this.#options = options;
    const { tunnel, commands, metrics } = options;
    for (const command of commands) {
      for (const result of Object.values(RESULTS)) metrics.tunnelCommands.inc({ tunnel, command, result }, 0);
    }
  }

  /** Ends as `send` does. */
  async count(command: string, send: () => Promise<void>): Promise<void> {
    const { tunnel, metrics } = this.#options;
    const labels = { tunnel, command };
    try {
      await send();
      metrics.tunnelCommands.inc({ ...labels, result: RESULTS.sent });
    } catch (error) {
      metrics.tunnelCommands.inc({ ...labels, result: isUnsent(error) ? RESULTS.notConnected : RESULTS.failed });
      throw error;
    }
  }
}
