import type { InvalidMessage } from '../../../../src/tunnel/tunnel.ts';
import type { Sender } from '../../../../tunnels/arklet/intake.ts';
import { maxBytesOf, receive } from '../../../../tunnels/mqtt/receive.ts';
import type { MessageType } from '../../../../tunnels/mqtt/topics.ts';
import type { Call } from '../../../contract/tunnel.ts';
import { RecordingHandler } from '../../../contract/tunnel.ts';

export const SOURCE = { tunnel: 'mqtt_tunnel_provider', identity: 'base-1' } as const;

export interface Heard {
  readonly calls: readonly Call[];
  readonly invalid: InvalidMessage | undefined;
}

/** What becomes of a payload on a topic of `identity`. */
export function hear(
  type: MessageType,
  payload: string | Uint8Array,
  identity: string = SOURCE.identity,
  sender: Sender = 'Known',
): Heard {
  const handler = new RecordingHandler();
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const maxBytes = maxBytesOf(type, sender);
  const invalid = receive(type, { source: { ...SOURCE, identity }, payload: bytes, maxBytes, handler });
  return { calls: handler.calls, invalid };
}

export function hearData(type: MessageType, data: unknown): Heard {
  return hear(type, JSON.stringify({ publishTimestamp: 5, data }));
}

/** Why a message of these data is refused; undefined where it is not. */
export function refusalOf(type: MessageType, data: unknown): string | undefined {
  const { calls, invalid } = hearData(type, data);
  if (invalid && calls.length > 0) throw new Error('refused and handed over');
  return invalid && `${invalid.code}: ${invalid.message}`;
}

export const HEART = {
  baseMetadata: { identity: 'base-1', name: 'shop', version: '1.2', clusterName: 'blue' },
  localIP: '10.0.0.7',
  localHostName: 'host-7',
  port: 1238,
  state: 'ACTIVATED',
};

/** `value` with the field at `path` replaced; undefined removes it. */
export function withField(value: unknown, path: readonly string[], replacement: unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return replacement;
  const owner = value as Record<string, unknown>;
  return { ...owner, [name]: withField(owner[name], rest, replacement) };
}
