import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressPolicy } from '../../../../src/tunnel/address-policy.ts';
import { type Accepted, MESSAGE_TYPES, receive } from '../../../../tunnels/http/receive.ts';
import { RecordingHandler } from '../../../contract/tunnel.ts';
import { heart, TUNNEL } from './http-world.ts';

const POLICY = new AddressPolicy();
const anyIp = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((ip) => `::ffff:${ip}`),
  fc.string(),
);
const anyHeart = fc
  .record({
    baseMetadata: fc.oneof(
      fc.constant(heart('base-1').baseMetadata),
      fc.record({ identity: fc.string() }),
      fc.jsonValue(),
    ),
    localIP: fc.oneof(anyIp, fc.jsonValue()),
    port: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
    state: fc.oneof(fc.constantFrom('activated', 'DEACTIVATED'), fc.jsonValue()),
  })
  .map((value) => Buffer.from(JSON.stringify(value)));
const anyPayload = fc.oneof(
  anyHeart,
  fc.json().map((text) => Buffer.from(text)),
  fc.uint8Array(),
);

describe('a message over HTTP, whatever it holds', () => {
  it('is refused with words or heard once, and never aims us where we do not go', () => {
    fc.assert(
      fc.property(fc.constantFrom(...MESSAGE_TYPES), anyPayload, (type, payload) => {
        const handler = new RecordingHandler();
        const source = { tunnel: TUNNEL, identity: '192.0.2.9' } as const;
        const keys: string[] = [];
        const onAccepted = ({ key }: Accepted): void => void keys.push(key);
        const invalid = receive(type, { source, payload, handler, policy: POLICY, onAccepted });
        expect([handler.calls.length, keys.length]).toEqual(invalid ? [0, 0] : [1, 1]);
        if (invalid) expect(invalid.message).not.toBe('');
        const [call] = handler.calls;
        if (call?.on !== 'heartbeat') return;
        expect(POLICY.faultOf(call.base.ip)).toBeUndefined();
        expect(Number.isInteger(call.base.port) && call.base.port > 0 && call.base.port <= 65_535).toBe(true);
      }),
      { numRuns: 1_000 },
    );
    expect(Object.keys({})).toEqual([]);
  });
});
