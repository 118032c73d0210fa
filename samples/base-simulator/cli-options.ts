import { parseArgs } from 'node:util';
import type { FleetOptions } from './fleet.ts';

export const HELP = `Simulated bases: JVM apps with the Koupleless agent arklet, reached over MQTT.

Usage: npm run base-simulator -- [flags]

  --broker URL               MQTT broker (default mqtt://127.0.0.1:1883)
  --username NAME            for the broker
  --password TEXT            for the broker; or MQTT_PASSWORD in the environment
  --env NAME                 environment in the topics (default dev)
  --count N                  number of bases (default 1)
  --identity-prefix TEXT     bases are called {prefix}1, {prefix}2, ... (default base-)
  --name NAME                name of the base app (default base)
  --base-version VERSION     version of the base app (default 1.0.0)
  --cluster-name NAME        (default default)
  --install-ms N             how long an install takes (default 800)
  --uninstall-ms N           how long an uninstall takes (default 100)
  --heartbeat-ms N           between heartbeats (default 10000)
  --clock-skew-ms N          how far the bases' clocks are ahead (default 0)
  --max-metaspace BYTES      -1 = unlimited (default -1)
  --activate-new-module      a second version of a module takes over
  --legacy-biz-topic         answer queryAllBiz on base/biz, as older agents do
  --quiet                    no line for health and queryAllBiz
  --help                     this text

An install whose URL contains "missing" fails like a jar that is not there.
`;

const FLAGS = {
  broker: { type: 'string', default: 'mqtt://127.0.0.1:1883' },
  username: { type: 'string' },
  password: { type: 'string' },
  env: { type: 'string', default: 'dev' },
  count: { type: 'string', default: '1' },
  'identity-prefix': { type: 'string', default: 'base-' },
  name: { type: 'string', default: 'base' },
  'base-version': { type: 'string', default: '1.0.0' },
  'cluster-name': { type: 'string', default: 'default' },
  'install-ms': { type: 'string', default: '800' },
  'uninstall-ms': { type: 'string', default: '100' },
  'heartbeat-ms': { type: 'string', default: '10000' },
  'clock-skew-ms': { type: 'string', default: '0' },
  'max-metaspace': { type: 'string', default: '-1' },
  'activate-new-module': { type: 'boolean', default: false },
  'legacy-biz-topic': { type: 'boolean', default: false },
  quiet: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Wrong use of the command line; the message names the flag. */
export class UsageError extends Error {}

export interface CliOptions {
  fleet: FleetOptions;
  isQuiet: boolean;
}

/** Undefined when help is asked for. */
export function parseCliOptions(args: string[], mqttPassword: string | undefined): CliOptions | undefined {
  const values = readFlags(args);
  if (values.help) return undefined;
  const password = values.password ?? mqttPassword;
  const fleet: FleetOptions = {
    brokerUrl: brokerUrlOf(values.broker),
    ...(values.username === undefined ? {} : { username: values.username }),
    ...(password === undefined ? {} : { password }),
    env: topicPartOf('--env', values.env),
    count: integerOf('--count', values.count, 1),
    identityPrefix: topicPartOf('--identity-prefix', values['identity-prefix']),
    name: values.name,
    version: values['base-version'],
    clusterName: values['cluster-name'],
    installMs: integerOf('--install-ms', values['install-ms'], 0),
    uninstallMs: integerOf('--uninstall-ms', values['uninstall-ms'], 0),
    heartbeatMs: integerOf('--heartbeat-ms', values['heartbeat-ms'], 1),
    clockSkewMs: integerOf('--clock-skew-ms', values['clock-skew-ms'], Number.MIN_SAFE_INTEGER),
    maxMetaspace: integerOf('--max-metaspace', values['max-metaspace'], -1),
    activateNewModule: values['activate-new-module'],
    legacyBizTopic: values['legacy-biz-topic'],
  };
  return { fleet, isQuiet: values.quiet };
}

function readFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function brokerUrlOf(text: string): string {
  const protocol = URL.parse(text)?.protocol;
  if (protocol === 'mqtt:' || protocol === 'mqtts:') return text;
  throw new UsageError(`--broker must be an URL like mqtt://127.0.0.1:1883, got '${text}'`);
}

function topicPartOf(flag: string, text: string): string {
  if (/^[A-Za-z0-9._-]+$/.test(text)) return text;
  throw new UsageError(`${flag} may hold letters, digits, '.', '_' and '-' only, got '${text}'`);
}

function integerOf(flag: string, text: string, minimum: number): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= minimum) return value;
  const bound = minimum === Number.MIN_SAFE_INTEGER ? '' : ` of at least ${minimum}`;
  throw new UsageError(`${flag} must be a whole number${bound}, got '${text}'`);
}
