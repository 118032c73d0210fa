import { beforeEach, describe, expect, it } from 'vitest';
import { createMetrics, type Metrics } from '../../../../src/metrics.ts';
import { InvalidMessages } from '../../../../tunnels/arklet/intake.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { recordingLogger } from '../mqtt/mqtt-world.ts';
import { SOURCE } from './parsing.ts';

describe('InvalidMessages', () => {
  let clock: FakeClock;
  let metrics: Metrics;
  let lines: Record<string, unknown>[];
  let invalid: InvalidMessages;

  beforeEach(() => {
    clock = new FakeClock();
    metrics = createMetrics();
    const recording = recordingLogger();
    lines = recording.lines;
    invalid = new InvalidMessages({ tunnel: SOURCE.tunnel, clock, logger: recording.logger, metrics });
  });

  const add = (identity: string, code: 'Arklet.InvalidMessage' | 'Arklet.IdentityMismatch' = 'Arklet.InvalidMessage') =>
    invalid.add({ tunnel: SOURCE.tunnel, identity, code, message: 'data is missing' });

  const counted = async (): Promise<number> => {
    const { values } = await metrics.tunnelInvalidMessages.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  };

  it('logs each code and identity once a minute, and counts all', async () => {
    for (let round = 0; round < 3; round++) add('base-1');
    add('base-2');
    add('base-1', 'Arklet.IdentityMismatch');
    expect(lines).toMatchObject([
      {
        msg: 'message of a base refused',
        code: 'Arklet.InvalidMessage',
        identity: 'base-1',
        reason: 'data is missing',
      },
      { code: 'Arklet.InvalidMessage', identity: 'base-2' },
      { code: 'Arklet.IdentityMismatch', identity: 'base-1' },
    ]);
    clock.advance(59_999);
    add('base-1');
    expect(lines).toHaveLength(3);
    clock.advance(1);
    add('base-1');
    expect(lines).toHaveLength(4);
    expect(await counted()).toBe(7);
  });

  it('logs no more than 1,000 a minute, whatever names are made up', async () => {
    for (let index = 0; index < 3_000; index++) add(`base-${index}`);
    expect(lines).toHaveLength(1_000);
    clock.advance(60_000);
    add('base-1');
    expect(lines).toHaveLength(1_001);
    expect(await counted()).toBe(3_001);
  });

  it('cuts names that nobody could read', () => {
    add('x'.repeat(60_000));
    expect(String(lines[0]?.identity)).toHaveLength(126);
  });
});
