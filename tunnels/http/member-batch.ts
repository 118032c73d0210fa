import { MESSAGE_TYPES, type MessageType } from './receive.ts';

/** What a base said to one member, for the others. `{"messages":[<this>, …]}` is what travels. */
export interface MemberMessage {
  readonly type: MessageType;
  /** The address that it came from. */
  readonly sender: string;
  /** The payload as the base sent it, as text: a newer member may understand more of it. */
  readonly body: string;
}

export const MAX_BATCH_MESSAGES = 500;
export const MAX_BATCH_BYTES = 1024 * 1024;
const BEFORE = '{"messages":[';
const AFTER = ']}';
/** How many bytes `MAX_BATCH_MESSAGES` texts may have together, the commas between them left out. */
export const MAX_TEXT_BYTES = MAX_BATCH_BYTES - BEFORE.length - AFTER.length - MAX_BATCH_MESSAGES;
const MAX_SENDER_LENGTH = 64;

export function messageTextOf({ type, sender, body }: MemberMessage): string {
  return JSON.stringify({ type, sender, body });
}

/** `texts`: what `messageTextOf` made. */
export function batchTextOf(texts: readonly string[]): string {
  return `${BEFORE}${texts.join(',')}${AFTER}`;
}

/** One message that was read, or the words for why it was not. */
export type ReadMessage =
  | { readonly message: MemberMessage; readonly fault?: never }
  | { readonly message?: never; readonly fault: string };

/** What another member posted, each message by itself; the words for why nothing of it can be read. Never throws. */
export function readBatch(payload: Uint8Array): readonly ReadMessage[] | string {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch {
    return 'payload is not JSON';
  }
  if (!isObject(value)) return 'payload is not an object';
  const { messages } = value;
  if (!Array.isArray(messages)) return 'messages is not a list';
  if (messages.length > MAX_BATCH_MESSAGES) {
    return `messages has ${messages.length} entries, ${MAX_BATCH_MESSAGES} are allowed`;
  }
  return messages.map((entry: unknown, index) => readMessage(entry, `messages[${index}]`));
}

function readMessage(value: unknown, path: string): ReadMessage {
  if (!isObject(value)) return { fault: `${path} is not an object` };
  const type = MESSAGE_TYPES.find((known) => known === value.type);
  if (type === undefined) return { fault: `${path}.type is none of ${MESSAGE_TYPES.join(', ')}` };
  const { sender, body } = value;
  if (typeof sender !== 'string') return { fault: `${path}.sender is not a string` };
  if (sender.length > MAX_SENDER_LENGTH) {
    return { fault: `${path}.sender has ${sender.length} characters, ${MAX_SENDER_LENGTH} are allowed` };
  }
  if (typeof body !== 'string') return { fault: `${path}.body is not a string` };
  return { message: { type, sender, body } };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
