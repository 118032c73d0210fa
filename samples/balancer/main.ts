import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/errors.ts';
import type { Exported } from '../../src/platform/export/export-service.ts';
import { followFeed } from './feed-watch.ts';
import { Haproxy } from './haproxy.ts';
import { haproxyConfigOf, servicePortsOf } from './haproxy-config.ts';
import { takenPortsOf } from './taken-ports.ts';

const HELP = `An HAProxy that serves what a group of ExportServices says: docs/export.md

Environment:
  FEED_URLS     of each replica, separated by commas: https://10.0.0.1:9444,https://10.0.0.2:9444
  FEED_GROUP    default external
  FEED_TOKEN    of the group, or of a service account that may get ExportServices
  FEED_CA_PATH  PEM of the CA of the feed; default: those that come with Node
  BIND          default 0.0.0.0
  PORT_OFFSET   added to each port of a Service; default 0
  HAPROXY       path of the program; default: the HAProxy of this machine`;

/** After a configuration that HAProxy has not taken, or a port that another process has. */
const RETRY_MS = 10_000;

function say(line: string): void {
  console.log(`${new Date().toISOString()} ${line}`);
}

/** One weight for each backend. */
function summaryOf({ namespace, serviceName, ports }: Exported): string {
  const weights = ports.flatMap(({ backends }) => backends.map(({ weight }) => weight));
  if (weights.length === 0) return `${namespace}/${serviceName} no backends`;
  return `${namespace}/${serviceName} weights ${weights.sort((a, b) => a - b).join(' ')}`;
}

function leftOutLines(services: readonly Exported[], without: ReadonlySet<number>, portOffset: number): string[] {
  return services.flatMap(({ namespace, serviceName, ports }) =>
    ports
      .filter(({ servicePort }) => without.has(servicePort))
      .map(
        ({ servicePort }) =>
          `${namespace}/${serviceName}: port ${servicePort + portOffset} is left out, another process has it; again in ${RETRY_MS / 1000} s`,
      ),
  );
}

async function main(): Promise<number> {
  const {
    FEED_URLS = '',
    FEED_GROUP: group = 'external',
    FEED_TOKEN: token = '',
    FEED_CA_PATH,
    BIND,
    PORT_OFFSET,
    HAPROXY,
  } = process.env;
  const urls = FEED_URLS.split(',').filter((url) => url !== '');
  const portOffset = Number(PORT_OFFSET ?? 0);
  if (urls.length === 0 || token === '' || !Number.isInteger(portOffset) || process.argv.includes('--help')) {
    console.log(HELP);
    return process.argv.includes('--help') ? 0 : 2;
  }
  let ca: string | undefined;
  try {
    ca = FEED_CA_PATH === undefined ? undefined : readFileSync(FEED_CA_PATH, 'utf8');
  } catch (error) {
    console.log(`FEED_CA_PATH cannot be read: ${messageOf(error)}`);
    return 2;
  }
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
  const directory = mkdtempSync(join(tmpdir(), 'balancer-'));
  const haproxy = new Haproxy({ directory, say, ...(HAPROXY !== undefined && { binary: HAPROXY }) });
  const options = { bind: BIND ?? '0.0.0.0', portOffset, idleSocket: join(directory, 'idle.sock') };
  let wanted: readonly Exported[] | undefined;
  let isLoading = false;
  /** Ports of Services that HAProxy listens on. */
  let held: ReadonlySet<number> = new Set();
  let loaded = '';
  let retry: NodeJS.Timeout | undefined;
  /** False when a port is left out. */
  const loadOne = async (next: readonly Exported[]): Promise<boolean> => {
    const ports = servicePortsOf(next);
    const unheld = [...ports].filter((port) => !held.has(port));
    const taken = await takenPortsOf(
      unheld.map((port) => port + portOffset),
      options.bind,
    );
    const without = new Set(unheld.filter((port) => taken.has(port + portOffset)));
    const text = haproxyConfigOf(next, { ...options, without });
    await haproxy.load(text);
    held = new Set([...ports].filter((port) => !without.has(port)));
    if (text !== loaded) {
      for (const line of leftOutLines(next, without, portOffset)) say(line);
      const served = next.filter((service) => service.ports.some(({ servicePort }) => held.has(servicePort)));
      say(`loaded ${served.length} Services: ${served.map(summaryOf).join('; ')}`);
    }
    loaded = text;
    return without.size === 0;
  };
  // What comes while it loads is loaded after that, the newest only.
  const load = async (services: readonly Exported[]): Promise<void> => {
    clearTimeout(retry);
    wanted = services;
    if (isLoading) return;
    isLoading = true;
    while (wanted !== undefined) {
      const next = wanted;
      wanted = undefined;
      try {
        const isWhole = await loadOne(next);
        clearTimeout(retry);
        if (!isWhole && !stopping.signal.aborted) retry = setTimeout(() => void load(next), RETRY_MS);
      } catch (error) {
        say(`not loaded, the former configuration stays, again in ${RETRY_MS / 1000} s: ${messageOf(error)}`);
        // A port that is taken may be free by then. What comes from the feed meanwhile is newer.
        clearTimeout(retry);
        retry = setTimeout(() => void load(next), RETRY_MS);
      }
    }
    isLoading = false;
  };
  await followFeed({ urls, group, token, ca, say, onChange: (services) => void load(services) }, stopping.signal);
  clearTimeout(retry);
  await haproxy.stop();
  rmSync(directory, { recursive: true, force: true });
  return 0;
}

process.exitCode = await main();
