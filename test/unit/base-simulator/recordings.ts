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
