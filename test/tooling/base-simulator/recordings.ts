import { readFileSync } from 'node:fs';

export interface RecordedMessage {
  /** The part of the topic after `koupleless_{env}/{identity}/`. */
  kind: string;
  isFromBase: boolean;
  text: string;
}

/** What a real base and a controller said to each other over MQTT, in order. */
export function recordedMqtt(): RecordedMessage[] {
  const text = readFileSync(new URL('./testdata/wire-mqtt.txt', import.meta.url), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const space = line.indexOf(' ');
      const kind = line.slice(0, space).split('/').slice(2).join('/');
      const isFromBase = kind.startsWith('base/') && kind !== 'base/baseline';
      return { kind, isFromBase, text: line.slice(space + 1) };
    });
}

/** The answers that a real base gave over HTTP to this request line, in order. */
export function recordedHttp(requestLine: string): Record<string, unknown>[] {
  const text = readFileSync(new URL('./testdata/wire-http.txt', import.meta.url), 'utf8');
  return text
    .split('\n\n')
    .map((exchange) => exchange.split('\n'))
    .filter(([request, status]) => request?.startsWith(requestLine) && status)
    .map(([, , answer]) => JSON.parse(answer ?? ''));
}

export interface RecordedPost {
  headers: Record<string, string>;
  text: string;
}

/** The heartbeats of a real base. */
export function recordedHeartbeats(): RecordedPost[] {
  return httpBlocks().flatMap((lines) =>
    lines
      .map((line) => /^POST \/heartbeat (\{.*?\}) (\{.*\})$/.exec(line))
      .filter((match) => match !== null)
      .map(([, headers = '', text = '']) => ({ headers: JSON.parse(headers), text })),
  );
}

export interface RecordedExchange {
  command: string;
  body: string;
  /** Undefined where the base gave none. Cut short by whoever recorded it where it ends in `...`. */
  answer: string | undefined;
}

/** The commands that a real base got over HTTP, in order. */
export function recordedExchanges(): RecordedExchange[] {
  return httpBlocks()
    .map(([request = '', , answer]) => ({ match: /^POST \/(\w+) (?!\{.*\} \{)(.*)$/.exec(request), answer }))
    .filter(({ match }) => match !== null && match[1] !== 'heartbeat')
    .map(({ match, answer }) => ({
      command: match?.[1] ?? '',
      body: match?.[2] ?? '',
      answer: answer?.replace('{...}', '{}'),
    }));
}

function httpBlocks(): string[][] {
  const text = readFileSync(new URL('./testdata/wire-http.txt', import.meta.url), 'utf8');
  return text
    .trim()
    .split('\n\n')
    .map((block) => block.split('\n'));
}
