import { parseArgs } from 'node:util';

/** What can be made to go wrong, so that a test sees the demo fail. */
export const BREAKS = ['silence-base', 'refuse-jar'] as const;
export type Break = (typeof BREAKS)[number];

export interface DemoOptions {
  readonly isOnce: boolean;
  /** On real JVMs. */
  readonly isJava: boolean;
  /** A ModuleDeployment in batches. */
  readonly isRollout: boolean;
  readonly stepTimeoutMs: number;
  readonly broken: Break | undefined;
}

const DEFAULT_STEP_TIMEOUT_SECONDS = 60;

export const HELP = `Module Controller at work: a control plane, a broker, one module, and five simulated bases:
three that speak MQTT and two that speak HTTP. With --java: three real JVMs with real modules.
With --rollout: a ModuleDeployment, an update in two batches that are confirmed, and the way back.

Usage: npm run demo -- [flags]

  --java                 on three real JVMs; needs a JDK 17 or newer and Maven 3.8 or newer
  --rollout              a ModuleDeployment in place of a Deployment; with --java a client calls every base meanwhile
  --once                 run all steps, clean up, and exit 0 only if each was seen to succeed
  --step-timeout N       seconds that a step may take (default ${DEFAULT_STEP_TIMEOUT_SECONDS}); not limited: making the control plane, building Java
  --help                 this text

For tests of the demo itself:

  --break silence-base   one base says nothing from the start
  --break refuse-jar     no base can load the module's jar
`;

/** Wrong use of the command line; the message names the flag. */
export class UsageError extends Error {}

/** Undefined when help is asked for. */
export function parseDemoOptions(args: readonly string[]): DemoOptions | undefined {
  const values = readFlags(args);
  if (values.help) return undefined;
  if (values.java && values.break !== undefined)
    throw new UsageError('--break works on simulated bases only, not with --java');
  return {
    isOnce: values.once,
    isJava: values.java,
    isRollout: values.rollout,
    stepTimeoutMs: secondsOf(values['step-timeout']) * 1000,
    broken: values.break === undefined ? undefined : breakOf(values.break),
  };
}

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        once: { type: 'boolean', default: false },
        java: { type: 'boolean', default: false },
        rollout: { type: 'boolean', default: false },
        'step-timeout': { type: 'string', default: String(DEFAULT_STEP_TIMEOUT_SECONDS) },
        break: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function secondsOf(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new UsageError(`--step-timeout must be a whole number of seconds from 1 to 9999, got '${text}'`);
}

function breakOf(text: string): Break {
  const found = BREAKS.find((name) => name === text);
  if (found === undefined) throw new UsageError(`--break must be one of ${BREAKS.join(', ')}, got '${text}'`);
  return found;
}
