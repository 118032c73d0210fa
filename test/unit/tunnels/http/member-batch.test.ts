import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchTextOf, type MemberMessage, messageTextOf, readBatch } from '../../../../tunnels/http/member-client.ts';
import { MESSAGE_TYPES } from '../../../../tunnels/http/receive.ts';

const HEART: MemberMessage = { type: 'heart', sender: '192.0.2.9', body: '{"a":1}' };
const read = (value: unknown) => readBatch(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));

const anyMessages = fc.array(
  fc.record({
    type: fc.constantFrom(...MESSAGE_TYPES),
    sender: fc.string({ maxLength: 64 }),
    // What came from bytes has no half of a pair.
    body: fc.string({ unit: 'grapheme' }),
  }),
  { maxLength: 20 },
);

describe('a batch of messages between members', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(anyMessages, (messages) => {
        expect(read(batchTextOf(messages.map(messageTextOf)))).toEqual(messages.map((message) => ({ message })));
      }),
    );
  });

  it('is read whatever it holds, without a throw', () => {
    const anyEntry = fc.oneof(fc.jsonValue(), fc.record({ type: fc.constant('heart'), sender: fc.jsonValue() }));
    const anyBatch = fc
      .oneof(fc.jsonValue(), fc.record({ messages: fc.array(anyEntry) }))
      .map((v) => JSON.stringify(v));
    fc.assert(
      fc.property(fc.oneof(anyBatch, fc.string()), (text) => {
        const batch = read(text);
        if (typeof batch === 'string') expect(batch).not.toBe('');
        else for (const { message, fault } of batch) expect(message === undefined).toBe(fault !== undefined);
      }),
    );
  });

  it.each([
    ['payload is not JSON', '{"messages":['],
    ['payload is not an object', '[]'],
    ['payload is not an object', 'null'],
    ['messages is not a list', '{}'],
    ['messages is not a list', { messages: { 0: HEART } }],
    ['messages has 501 entries, 500 are allowed', { messages: Array(501).fill(HEART) }],
  ])('is refused as a whole: %s', (fault, payload) => {
    expect(read(payload)).toBe(fault);
  });

  it('may hold 500 messages', () => {
    expect(read({ messages: Array(500).fill(HEART) })).toHaveLength(500);
  });

  it.each([
    ['messages[1] is not an object', 7],
    ['messages[1] is not an object', null],
    ['messages[1] is not an object', [HEART]],
    ['messages[1].type is not one of heart, queryBaseline', { ...HEART, type: 'installBiz' }],
    ['messages[1].type is not one of heart, queryBaseline', { ...HEART, type: undefined }],
    ['messages[1].sender is not a string', { ...HEART, sender: 7 }],
    ['messages[1].sender has 65 characters, 64 are allowed', { ...HEART, sender: 'x'.repeat(65) }],
    ['messages[1].body is not a string', { ...HEART, body: { a: 1 } }],
  ])('names the message that cannot be read, and has the others: %s', (fault, entry) => {
    expect(read({ messages: [HEART, entry, HEART] })).toEqual([{ message: HEART }, { fault }, { message: HEART }]);
  });
});
