import { beforeEach, describe, expect, it } from 'vitest';
import { createMetrics, type Metrics } from '../../../../src/metrics.ts';
import { IntakeGate } from '../../../../tunnels/arklet/intake.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { recordingLogger } from '../mqtt/mqtt-world.ts';
import { SOURCE } from './parsing.ts';

const LIMITS = {
  known: { burst: 2, refillMs: 1_000_000 },
  unknown: { burst: 1, refillMs: 1_000_000 },
  allUnknown: { burst: 2, refillMs: 1_000_000 },
};

describe('IntakeGate', () => {
  let clock: FakeClock;
  let metrics: Metrics;
  let lines: Record<string, unknown>[];
  let gate: IntakeGate;

  beforeEach(() => {
    clock = new FakeClock();
    metrics = createMetrics();
    const recording = recordingLogger();
    lines = recording.lines;
    gate = new IntakeGate({ tunnel: SOURCE.tunnel, limits: LIMITS, clock, logger: recording.logger, metrics });
  });

  const counts = async () =>
    Object.fromEntries((await metrics.intakeRefused.get()).values.map(({ labels, value }) => [labels.reason, value]));
  const logged = () => lines.map(({ reason, source }) => [reason, source]);

  it('counts what it refuses by reason, from 0', async () => {
    expect(await counts()).toEqual({ Source: 0, Unknown: 0, Sockets: 0, Unfinished: 0 });
    expect(['a', 'a', 'b', 'c'].map((source) => gate.admits(source, 'Unknown'))).toEqual([true, false, true, false]);
    gate.refuse('d', 'Sockets');
    expect(await counts()).toEqual({ Source: 1, Unknown: 1, Sockets: 1, Unfinished: 0 });
  });

  it('logs once a minute for each reason', () => {
    clock.advance(5_000);
    for (const source of ['a', 'b']) gate.refuse(source, 'Source');
    gate.refuse('c', 'Sockets');
    clock.advance(59_999);
    gate.refuse('d', 'Source');
    expect(logged()).toEqual([
      ['Source', 'a'],
      ['Sockets', 'c'],
    ]);
    clock.advance(1);
    gate.refuse('e', 'Source');
    expect(logged().slice(2)).toEqual([['Source', 'e']]);
  });

  it('takes a source for known while a known base was heard from it', () => {
    expect([gate.admitsSource('a'), gate.admitsSource('a')]).toEqual([true, false]);
    gate.noteKnown('a');
    expect([gate.admitsSource('a'), gate.admitsSource('a'), gate.admitsSource('a')]).toEqual([true, true, false]);
  });
});
