import { type CliOptions, HELP, parseCliOptions, UsageError } from './cli-options.ts';
import { type Fleet, startFleet } from './fleet.ts';
import type { CommandRecord } from './history.ts';

const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

function say(text: string): void {
  console.log(`${new Date().toISOString()} ${text}`);
}

function describe(record: CommandRecord): string {
  const { base, command, bizName, bizVersion, bizUrl, outcome, finishedAt, receivedAt } = record;
  const module = bizName === undefined ? '' : ` ${bizName}:${bizVersion ?? ''}`;
  const end = finishedAt === undefined ? `received ${bizUrl ?? ''}` : `${outcome} after ${finishedAt - receivedAt} ms`;
  return `${base} ${command}${module} ${end}`.trimEnd();
}

function logCommands(fleet: Fleet, isQuiet: boolean): void {
  fleet.history.subscribe((record) => {
    const isPoll = record.command === 'health' || record.command === 'queryAllBiz';
    // A poll is done at once: one line is enough.
    if (isPoll && (isQuiet || record.finishedAt === undefined)) return;
    say(describe(record));
  });
}

/** Resolves at the first signal to stop. */
function untilStopped(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal));
  });
}

async function run({ fleet: options, isQuiet }: CliOptions): Promise<void> {
  const stopped = untilStopped();
  // The history is for log lines only here.
  const fleet = await startFleet({ ...options, announce: false, historyLimit: 1_000 });
  logCommands(fleet, isQuiet);
  fleet.announce();
  const identities = fleet.bases.map((base) => base.identity);
  const names = identities.length > 4 ? `${identities[0]} to ${identities.at(-1)}` : identities.join(', ');
  say(`${identities.length} bases in env ${options.env} at ${options.brokerUrl ?? options.controllerUrl}: ${names}`);
  if (options.controllerUrl !== undefined) {
    for (const { identity, localIP, port } of fleet.bases)
      say(`${identity} takes commands at http://${localIP}:${port}`);
  }
  say(`${await stopped}: stopping`);
  await fleet.stop();
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `: ${causeTextOf(error.cause)}` : '';
  return `${error.message.replace(/^brokerUrl:/, '--broker:').replace(/^listenAddress:/, '--local-ip:')}${cause}`;
}

/** A refused connection to a name with several addresses has its reasons in a list. */
function causeTextOf(cause: Error): string {
  return cause instanceof AggregateError ? cause.errors.map((one) => String(one?.message)).join(', ') : cause.message;
}

try {
  const { MQTT_PASSWORD: mqttPassword, HTTP_TUNNEL_TOKEN: token } = process.env;
  const options = parseCliOptions(process.argv.slice(2), { mqttPassword, token });
  if (options) await run(options);
  else console.log(HELP);
} catch (error) {
  console.error(explain(error));
  if (error instanceof UsageError) console.error('Try --help.');
  process.exitCode = error instanceof UsageError ? EXIT_USAGE : EXIT_FAILURE;
}
