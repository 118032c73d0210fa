import { describe, expect, it } from 'vitest';
import { EventCorrelator, type EventSubject } from '../../../src/kube/events/event-correlator.ts';

const subject = (name: string): EventSubject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  namespace: 'ns',
  name,
  uid: `uid-${name}`,
});
const MINUTE = 60_000;

describe('EventCorrelator', () => {
  const start = () => {
    const correlator = new EventCorrelator();
    return (name: string, reason: string, message: string, now = 0) =>
      correlator.correlate({ subject: subject(name), type: 'Normal', reason, message }, now);
  };

  it('keeps no more of a message than is written', () => {
    const { series } = start()('a', 'FieldsIgnored', 'x'.repeat(100_000));
    expect([series.message.length, series.input.message.length]).toEqual([1_024, 1_024]);
  });

  it('counts an event that happens again', () => {
    const correlate = start();
    const first = correlate('a', 'Pulled', 'm', 1000).series;
    const second = correlate('a', 'Pulled', 'm', 5000).series;
    expect(second).toBe(first);
    expect(second).toMatchObject({ count: 2, firstAt: 1000, lastAt: 5000, message: 'm' });
  });

  it('keeps events of other objects, reasons, texts and incarnations apart', () => {
    const correlator = new EventCorrelator();
    const input = { subject: subject('a'), type: 'Normal', reason: 'r', message: 'm' } as const;
    const inputs = [
      input,
      { ...input, subject: subject('b') },
      { ...input, subject: { ...subject('a'), uid: 'other' } },
      { ...input, type: 'Warning' as const },
      { ...input, reason: 'r2' },
      { ...input, message: 'm2' },
    ];
    const all = inputs.map((one) => correlator.correlate(one, 0).series);
    expect(new Set(all).size).toBe(inputs.length);
  });

  it('combines similar events after ten different texts', () => {
    const correlate = start();
    const results = Array.from({ length: 13 }, (_, i) => correlate('a', 'Failed', `try ${i}`));
    expect(results.map(({ isCombined }) => isCombined)).toEqual([...Array(10).fill(false), true, true, true]);
    expect(results[12]?.series).toBe(results[10]?.series);
    expect(results[12]?.series).toMatchObject({ count: 3, message: '(combined from similar events): try 12' });
    expect(correlate('a', 'Failed', 'try 0').isCombined).toBe(false);
    expect(correlate('a', 'Other', 'try 99').isCombined).toBe(false);
    expect(correlate('b', 'Failed', 'try 99').isCombined).toBe(false);
  });

  it('begins to tell them apart again after ten quiet minutes', () => {
    const correlate = start();
    for (let i = 0; i < 12; i++) correlate('a', 'Failed', `try ${i}`);
    expect(correlate('a', 'Failed', 'x', 10 * MINUTE).isCombined).toBe(true);
    const texts = Array.from({ length: 11 }, (_, i) => correlate('a', 'Failed', `again ${i}`, 20 * MINUTE + 1));
    expect(texts.map(({ isCombined }) => isCombined)).toEqual([...Array(10).fill(false), true]);
  });

  it('allows 25 events of a reason of an object at once and then one each five minutes, and counts the others', () => {
    const correlate = start();
    const allowed = (now: number) => correlate('a', 'BackOff', 'm', now).isAllowed;
    expect(Array.from({ length: 27 }, () => allowed(0))).toEqual([...Array(25).fill(true), false, false]);
    expect([allowed(5 * MINUTE - 1), allowed(5 * MINUTE), allowed(5 * MINUTE)]).toEqual([false, true, false]);
    expect(correlate('a', 'BackOff', 'm', 6 * MINUTE).series.count).toBe(31);
    expect(correlate('b', 'BackOff', 'm', 0).isAllowed).toBe(true);
    expect(correlate('a', 'WaitingConfirm', 'm', 6 * MINUTE).isAllowed).toBe(true);
  });

  it('remembers 4096 objects and no more', () => {
    const correlate = start();
    const first = correlate('first', 'r', 'm').series;
    for (let i = 0; i < 4095; i++) correlate(`pod-${i}`, 'r', 'm');
    expect(correlate('first', 'r', 'm').series).toBe(first);
    for (let i = 0; i < 4096; i++) correlate(`pod-${i}`, 'r', 'm');
    expect(correlate('first', 'r', 'm').series).not.toBe(first);
  });
});
