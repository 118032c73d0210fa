import { parseArgs } from 'node:util';
import type { FleetOptions } from './fleet.ts';

export const HELP = `Simulated bases: JVM apps with the Koupleless agent arklet, reached over MQTT or HTTP.

Usage: npm run base-simulator -- [flags]

  --broker URL               MQTT broker (default mqtt://127.0.0.1:1883)
  --controller URL           over HTTP instead: where the controller takes heartbeats, e.g. http://127.0.0.1:7777
  --token TEXT               for the controller; or HTTP_TUNNEL_TOKEN in the environment
  --local-ip ADDRESS         over HTTP: where bases take commands, each on a free port (default: the first address
                             of this machine that others can reach)
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
  --heartbeat-ms N           between heartbeats (default 10000, over HTTP 12000)
  --clock-skew-ms N          how far the bases' clocks are ahead (default 0)
  --event-loops N            over HTTP: commands that a base works on at a time, questions included (default 4)
  --max-metaspace BYTES      -1 = unlimited (default -1)
  --activate-new-module      a second version of a module takes over
  --legacy-biz-topic         answer queryAllBiz on base/biz, as older agents do
  --quiet                    no line for health and queryAllBiz
  --help                     this text

An install whose URL contains "missing" fails like a jar that is not there.
`;

const FLAGS = {
  broker: { type: 'string' },
  controller: { type: 'string' },
  token: { type: 'string' },
  'local-ip': { type: 'string' },
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
  'heartbeat-ms': { type: 'string' },
  'clock-skew-ms': { type: 'string', default: '0' },
  'event-loops': { type: 'string', default: '4' },
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

/** What may come from the environment, so that no secret stands in a list of processes. */
export interface Secrets {
  mqttPassword?: string | undefined;
  token?: string | undefined;
}

/** Undefined when help is asked for. */
export function parseCliOptions(args: string[], secrets: Secrets): CliOptions | undefined {
  const values = readFlags(args);
  if (values.help) return undefined;
  const heartbeatMs = values['heartbeat-ms'];
  const fleet: FleetOptions = {
    ...linkOf(values, secrets),
    env: topicPartOf('--env', values.env),
    ...basesOf(values['local-ip'], integerOf('--count', values.count, 1)),
    identityPrefix: topicPartOf('--identity-prefix', values['identity-prefix']),
    name: values.name,
    version: values['base-version'],
    clusterName: values['cluster-name'],
    installMs: integerOf('--install-ms', values['install-ms'], 0),
    uninstallMs: integerOf('--uninstall-ms', values['uninstall-ms'], 0),
    ...(heartbeatMs === undefined ? {} : { heartbeatMs: integerOf('--heartbeat-ms', heartbeatMs, 1) }),
    clockSkewMs: integerOf('--clock-skew-ms', values['clock-skew-ms'], Number.MIN_SAFE_INTEGER),
    eventLoops: integerOf('--event-loops', values['event-loops'], 1),
    maxMetaspace: integerOf('--max-metaspace', values['max-metaspace'], -1),
    activateNewModule: values['activate-new-module'],
    legacyBizTopic: values['legacy-biz-topic'],
  };
  return { fleet, isQuiet: values.quiet };
}

type Flags = ReturnType<typeof readFlags>;

function linkOf(values: Flags, secrets: Secrets): Partial<FleetOptions> {
  const { broker, controller, username, password = secrets.mqttPassword, token = secrets.token } = values;
  if (controller === undefined) {
    return {
      brokerUrl: urlOf('--broker', broker ?? 'mqtt://127.0.0.1:1883', ['mqtt:', 'mqtts:']),
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
    };
  }
  if (broker !== undefined) throw new UsageError('--broker and --controller exclude each other');
  const controllerUrl = urlOf('--controller', controller, ['http:']);
  return { controllerUrl, ...(token === undefined ? {} : { token }) };
}

/** The address of one machine can be that of many bases: each has a port of its own. */
function basesOf(localIP: string | undefined, count: number): Partial<FleetOptions> {
  return localIP === undefined ? { count } : { bases: Array.from({ length: count }, () => ({ localIP })) };
}

function readFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

const EXAMPLES = { '--broker': 'mqtt://127.0.0.1:1883', '--controller': 'http://127.0.0.1:7777' } as const;

function urlOf(flag: keyof typeof EXAMPLES, text: string, protocols: readonly string[]): string {
  if (protocols.includes(URL.parse(text)?.protocol ?? '')) return text;
  throw new UsageError(`${flag} must be an URL like ${EXAMPLES[flag]}, got '${text}'`);
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
