import { readFileSync } from 'node:fs';

const read = (name: string): string => readFileSync(new URL(`testdata/${name}`, import.meta.url), 'utf8');

export interface RecordedMessage {
  readonly topic: string;
  readonly payload: string;
}

/** What went over MQTT between a real base, 192.0.2.2 in env default, and a controller, in order. */
export const mqttRecording: readonly RecordedMessage[] = read('wire-mqtt.txt')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const space = line.indexOf(' ');
    return { topic: line.slice(0, space), payload: line.slice(space + 1) };
  });

export const RECORDED_IDENTITY = '192.0.2.2';

/** Only what the base said. */
export const mqttBaseMessages = mqttRecording.filter(
  ({ topic }) => topic.split('/')[2] === 'base' && !topic.endsWith('/baseline'),
);

/** The answers of a real base over HTTP that are whole JSON, by the line of their request. */
export function httpAnswers(request: string): string[] {
  return read('wire-http.txt')
    .split('\n\n')
    .map((exchange) => exchange.split('\n'))
    .filter(([first]) => first === request)
    .map((lines) => lines[2] ?? '');
}

/** The bodies of a real base's heartbeats over HTTP. */
export const httpHeartbeats: readonly string[] = read('wire-http.txt')
  .split('\n')
  .filter((line) => line.startsWith('POST /heartbeat '))
  .map((line) => line.slice(line.indexOf('} {') + 2));

/** The answer to health is recorded in part; this is that part, with what is open closed. */
export const httpHealthAnswer = `${/^.*"healthData":\{"jvm":\{[^}]*\}/m.exec(read('wire-http.txt'))?.[0]}}}}`;
