import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { MODULE_STATES } from '../../../../src/tunnel/module.ts';
import { MESSAGE_TYPES, type MessageType } from '../../../../tunnels/mqtt/topics.ts';
import type { Call } from '../../../contract/tunnel.ts';
import { mqttBaseMessages, RECORDED_IDENTITY } from '../recordings.ts';
import { type Heard, hear } from './parsing.ts';

const SEEDS = mqttBaseMessages.map(({ topic, payload }) => ({
  type: MESSAGE_TYPES.find((type) => topic.endsWith(`/${type}`)) ?? ('heart' satisfies MessageType),
  payload,
}));

const expectBounded = (text: string, maxLength: number): void => {
  expect(typeof text).toBe('string');
  expect(text.length).toBeLessThanOrEqual(maxLength);
};

const expectAmount = (value: number | undefined): void => {
  if (value !== undefined) expect(Number.isFinite(value) && value >= 0).toBe(true);
};

/** What the core may rely on, whatever was sent. */
function expectWithinBounds(call: Call): void {
  if (call.on === 'heartbeat') {
    const { name, version, clusterName, hostName, port } = call.base;
    for (const text of [name, clusterName, hostName]) expectBounded(text, 253);
    expectBounded(version, 128);
    expect(Number.isInteger(port) && port >= 0 && port <= 65_535).toBe(true);
  } else if (call.on === 'health') {
    expectAmount(call.health.metaspaceUsedBytes);
    expectAmount(call.health.metaspaceMaxBytes);
    expectAmount(call.health.runTimeSeconds);
  } else if (call.on === 'moduleList') {
    for (const { name, version, state } of call.modules) {
      expectBounded(name, 4_096);
      expectBounded(version, 4_096);
      expect(MODULE_STATES).toContain(state);
    }
  } else if (call.on === 'operationResult') {
    expect(Buffer.byteLength(call.result.message)).toBeLessThanOrEqual(1024);
    expectBounded(call.result.code, 128);
    if (call.result.module) expectBounded(call.result.module.name, 4_096);
  }
}

function expectSane({ calls, invalid }: Heard): void {
  if (invalid) {
    expect(calls).toEqual([]);
    expect(invalid.message).not.toBe('');
  }
  for (const call of calls) expectWithinBounds(call);
}

/** All places in a value, as paths of keys. */
function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...path]];
  return [[...path], ...Object.entries(value).flatMap(([key, child]) => pathsOf(child, [...path, key]))];
}

/** JSON text in which `marker` stands for what is at `path`. */
function withText(text: string, path: readonly string[], replacement: string): string {
  const marker = '@@here@@';
  const value: unknown = JSON.parse(text, (_key, child) => child);
  if (path.length === 0) return replacement;
  let owner = value as Record<string, unknown>;
  for (const key of path.slice(0, -1)) owner = owner[key] as Record<string, unknown>;
  owner[path.at(-1) ?? ''] = marker;
  return JSON.stringify(value).replace(`"${marker}"`, () => replacement);
}

const anyType = fc.constantFrom(...MESSAGE_TYPES);
const hostileJson = fc.oneof(
  fc.json(),
  fc.constantFrom(
    '{"__proto__":{"polluted":true}}',
    '{"constructor":{"prototype":{"polluted":true}}}',
    '[{"__proto__":[]}]',
    '1e999',
    '-1e-999',
    '"\\ud800"',
    '"9007199254740993"',
    `"${'9'.repeat(400)}"`,
    `"${'x'.repeat(5_000)}"`,
    '["", null, {}]',
    '[[[[]]]]',
    '""',
    'null',
    'true',
    '-1',
  ),
);

describe('no payload', () => {
  afterEach(() => {
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(Object.getOwnPropertyNames(Array.prototype)).not.toContain('polluted');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('of any bytes makes the tunnel throw', () => {
    fc.assert(fc.property(anyType, fc.uint8Array({ maxLength: 200 }), (type, bytes) => expectSane(hear(type, bytes))));
  });

  it('of any JSON makes the tunnel throw, bare or wrapped', () => {
    fc.assert(
      fc.property(anyType, hostileJson, (type, json) => {
        expectSane(hear(type, json));
        expectSane(hear(type, `{"publishTimestamp":1,"data":${json}}`));
      }),
      { numRuns: 1_000 },
    );
  });

  it('that was recorded, with anything in any one place, makes the tunnel throw or say what is out of bounds', () => {
    for (const { type, payload } of SEEDS) {
      const place = fc.constantFrom(...pathsOf(JSON.parse(payload)));
      fc.assert(
        fc.property(place, hostileJson, (path, json) =>
          expectSane(hear(type, withText(payload, path, json), RECORDED_IDENTITY)),
        ),
        { numRuns: 150 },
      );
    }
  });

  it('that was recorded, with bytes changed or cut, makes the tunnel throw', () => {
    const edit = fc.record({ at: fc.nat(), byte: fc.nat(255), keep: fc.nat() });
    for (const { type, payload } of SEEDS) {
      fc.assert(
        fc.property(edit, fc.boolean(), ({ at, byte, keep }, isCut) => {
          const bytes = Buffer.from(payload);
          bytes[at % bytes.length] = byte;
          expectSane(hear(type, isCut ? bytes.subarray(0, keep % bytes.length) : bytes, RECORDED_IDENTITY));
        }),
      );
    }
  });

  it('on a topic of any base makes the tunnel throw', () => {
    fc.assert(
      fc.property(anyType, fc.string(), hostileJson, (type, identity, json) =>
        expectSane(hear(type, `{"data":${json}}`, identity)),
      ),
    );
  });
});

describe('every recorded message', () => {
  it.each(SEEDS)('on $type is heard', ({ type, payload }) => {
    const heard = hear(type, payload, RECORDED_IDENTITY);
    expect(heard.invalid).toBeUndefined();
    expect(heard.calls).toHaveLength(1);
    expectSane(heard);
  });
});
