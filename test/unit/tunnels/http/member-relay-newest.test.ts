import { describe, expect, it } from 'vitest';
import { batchTextOf, MAX_BATCH_BYTES, MAX_TEXT_BYTES } from '../../../../tunnels/http/member-client.ts';
import { NewestMessages } from '../../../../tunnels/http/member-relay.ts';

const message = (key: string, { heardAt = 0, text = key } = {}) => ({
  key,
  text,
  byteLength: Buffer.byteLength(text),
  heardAt,
});

function filled(count: number, text?: string): NewestMessages {
  const messages = new NewestMessages();
  for (let index = 0; index < count; index++) messages.put(message(`m${index}`, text === undefined ? {} : { text }));
  return messages;
}

const keysOf = (messages: readonly { key: string }[]) => messages.map(({ key }) => key);

describe('NewestMessages', () => {
  it('keeps of each key the newest, in the order in which these were said', () => {
    const messages = filled(3);
    messages.put(message('m1', { text: 'again' }));
    expect(messages.size).toBe(3);
    expect(messages.takeAll().map(({ key, text }) => [key, text])).toEqual([
      ['m0', 'm0'],
      ['m2', 'm2'],
      ['m1', 'again'],
    ]);
    expect(messages.size).toBe(0);
  });

  it('gives batches of 500, the oldest first, each message once', () => {
    const messages = filled(1_200);
    const batches = [messages.takeBatch(), messages.takeBatch(), messages.takeBatch(), messages.takeBatch()];
    expect(batches.map((batch) => batch.length)).toEqual([500, 500, 200, 0]);
    expect(keysOf(batches.flat())).toEqual(keysOf(filled(1_200).takeAll()));
  });

  it('gives no batch above 1 MiB', () => {
    const messages = filled(40, 'ä'.repeat(32 * 1024));
    const sizes: number[] = [];
    for (let batch = messages.takeBatch(); batch.length > 0; batch = messages.takeBatch()) {
      expect(Buffer.byteLength(batchTextOf(batch.map(({ text }) => text)))).toBeLessThanOrEqual(MAX_BATCH_BYTES);
      sizes.push(batch.length);
    }
    expect(sizes).toEqual([15, 15, 10]);
  });

  it('has in a batch what fills it to the last byte', () => {
    const half = 'x'.repeat(Math.floor(MAX_TEXT_BYTES / 2));
    const rest = 'x'.repeat(MAX_TEXT_BYTES - half.length);
    const messages = new NewestMessages();
    for (const text of [half, rest, 'y']) messages.put(message(text.slice(0, 1) + text.length, { text }));
    expect([messages.takeBatch().length, messages.takeBatch().length]).toEqual([2, 1]);
    for (const text of [half, `${rest}x`]) messages.put(message(String(text.length), { text }));
    expect(messages.takeBatch().length).toBe(1);
  });

  it('has room for 500 messages that fill 1 MiB to the last byte', () => {
    const text = 'x'.repeat(Math.floor(MAX_BATCH_BYTES / 500) - 2);
    const batch = filled(500, text).takeBatch();
    const byteLength = Buffer.byteLength(batchTextOf(batch.map((entry) => entry.text)));
    expect([batch.length, byteLength <= MAX_BATCH_BYTES]).toEqual([500, true]);
  });

  it('forgets what was heard before a time, and counts it', () => {
    const messages = new NewestMessages();
    for (const heardAt of [10, 20, 30]) messages.put(message(`at ${heardAt}`, { heardAt }));
    messages.put(message('at 10', { heardAt: 40 }));
    expect(messages.dropBefore(30)).toBe(1);
    expect(keysOf(messages.takeAll())).toEqual(['at 30', 'at 10']);
  });

  it('has room for 10,000 messages and 16 MiB: the oldest go, and are counted', () => {
    const many = filled(10_000);
    expect(many.put(message('m0'))).toBe(0);
    expect(many.put(message('one more'))).toBe(1);
    expect([many.size, keysOf(many.takeBatch())[0]]).toEqual([10_000, 'm2']);
    const large = filled(64, 'x'.repeat(256 * 1024));
    expect(large.put(message('one more'))).toBe(1);
    expect(keysOf(large.takeAll())[0]).toBe('m1');
    expect(large.put(message('the first again'))).toBe(0);
  });
});
