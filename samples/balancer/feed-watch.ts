import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../src/errors.ts';
import type { Exported } from '../../src/platform/export/export-service.ts';

export interface FeedWatchOptions {
  /** Of each replica, or of a Service before them: `https://host:9444`. The next one is asked when one fails. */
  readonly urls: readonly string[];
  readonly group: string;
  readonly token: string;
  /** PEM of the CA of the feed. Default: those that come with Node. */
  readonly ca: string | undefined;
  /** Gets all Services of the group whenever something has changed. */
  readonly onChange: (services: readonly Exported[]) => void;
  readonly say: (line: string) => void;
}

interface Line {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'SYNCED';
  readonly object?: Exported;
}

/** An empty line comes every 15 s: without two of them the connection is dead. */
const SILENT_FOR_MS = 35_000;
/** Before another replica is asked. */
const AGAIN_MS = 200;
/** After all of them have failed, doubled each time. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const LONGEST_ANSWER = 500;

/** Milliseconds before the next try, after so many failures in a row. */
export function waitOf(failures: number, urls: number): number {
  if (failures < urls) return AGAIN_MS;
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - urls));
}

/** Follows the feed until `signal` is aborted. What is known stays while no replica answers. */
export async function followFeed(options: FeedWatchOptions, signal: AbortSignal): Promise<void> {
  const { urls, say } = options;
  /** The last failure of each replica: a repeated one is logged once. */
  const said = new Map<string, string>();
  let failures = 0;
  for (let index = 0; !signal.aborted; index++) {
    const url = urls[index % urls.length] ?? '';
    try {
      await followOne(url, options, signal, () => {
        failures = 0;
        said.delete(url);
      });
      say(`${url}: the feed has ended`);
    } catch (error) {
      const words = messageOf(error);
      if (!signal.aborted && said.get(url) !== words) say(`${url}: ${words}`);
      said.set(url, words);
    }
    failures++;
    await delay(waitOf(failures, urls.length), undefined, { signal }).catch(() => {});
  }
}

async function followOne(
  url: string,
  options: FeedWatchOptions,
  signal: AbortSignal,
  onOpen: () => void,
): Promise<void> {
  const response = await open(url, options, signal);
  if (response.statusCode !== 200) {
    throw new Error(`HTTP ${response.statusCode} ${await textOf(response)}`.trim());
  }
  onOpen();
  options.say(`${url}: following group ${options.group}`);
  const services = new Map<string, Exported>();
  let isSynced = false;
  let rest = '';
  response.setEncoding('utf8').setTimeout(SILENT_FOR_MS, () => response.destroy(new Error('nothing came for 35 s')));
  for await (const chunk of response) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') isSynced = take(services, JSON.parse(line)) || isSynced;
    // Half of a first list is no list.
    if (isSynced && lines.some((line) => line !== '')) options.onChange([...services.values()]);
  }
}

/** The beginning of an answer, in one line. */
async function textOf(response: IncomingMessage): Promise<string> {
  let answer = '';
  response.setEncoding('utf8').setTimeout(5_000, () => response.destroy());
  for await (const chunk of response) {
    answer += chunk;
    if (answer.length > LONGEST_ANSWER) break;
  }
  return answer
    .slice(0, LONGEST_ANSWER)
    .replace(/\p{C}+/gu, ' ')
    .trim();
}

/** True at the end of the first list. */
function take(services: Map<string, Exported>, { type, object }: Line): boolean {
  if (type === 'SYNCED' || object === undefined) return true;
  const key = `${object.namespace}/${object.serviceName}`;
  if (type === 'DELETED') services.delete(key);
  else services.set(key, object);
  return false;
}

function open(url: string, { group, token, ca }: FeedWatchOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(
    `${url}/v1/exportservices?watch=1&group=${encodeURIComponent(group)}`,
    { headers: { Authorization: `Bearer ${token}` }, ...(ca !== undefined && { ca }), signal, timeout: 5_000 },
    resolve,
  )
    .once('error', reject)
    .once('timeout', function (this: { destroy(error: Error): void }) {
      this.destroy(new Error('no answer within 5 s'));
    })
    .end();
  return promise;
}
