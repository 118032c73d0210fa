import { describe, expect, it } from 'vitest';
import type { EventSeries, EventType } from '../../../src/kube/events/event-correlator.ts';
import { EventQueue } from '../../../src/kube/events/event-queue.ts';

function series(name: string, type: EventType = 'Normal'): EventSeries {
  const subject = { apiVersion: 'v1', kind: 'Node', namespace: '', name, uid: name } as const;
  const input = { subject, type, reason: 'R', message: name };
  return { input, message: name, count: 1, firstAt: 0, lastAt: 0, objectName: undefined, isWritten: false };
}

/** Counts what is dropped. */
function queueOf(capacity: number): { queue: EventQueue; dropped: () => number } {
  let count = 0;
  return { queue: new EventQueue(capacity, () => count++), dropped: () => count };
}

function namesOf(queue: EventQueue, now = 0): string[] {
  const names: string[] = [];
  for (let next = queue.next(now); next; next = queue.next(now)) names.push(next.message);
  return names;
}

describe('events that wait', () => {
  it('are taken once each, Warnings first, in the order in which they came', () => {
    const { queue, dropped } = queueOf(10);
    const twice = series('n1');
    for (const one of [twice, series('n2'), series('w1', 'Warning'), twice, series('w2', 'Warning')]) queue.add(one, 0);
    expect([queue.size, queue.hasWarning]).toEqual([4, true]);
    expect(namesOf(queue)).toEqual(['w1', 'w2', 'n1', 'n2']);
    expect([queue.size, queue.hasWarning, dropped()]).toEqual([0, false, 0]);
  });

  it('make room for newer ones, the oldest Normal first', () => {
    const { queue, dropped } = queueOf(2);
    for (const one of [series('n1'), series('n2'), series('w1', 'Warning'), series('n3')]) queue.add(one, 0);
    expect([queue.size, dropped()]).toEqual([2, 2]);
    expect(namesOf(queue)).toEqual(['w1', 'n3']);
  });

  it('are the newest 100 where they are Normals, and all where they are Warnings', () => {
    const { queue, dropped } = queueOf(1_000);
    for (let index = 0; index < 102; index++) {
      queue.add(series(`n${index}`), 0);
      queue.add(series(`w${index}`, 'Warning'), 0);
    }
    expect([queue.size, dropped()]).toEqual([202, 2]);
    const normals = namesOf(queue).slice(102);
    expect([normals.length, normals[0], normals.at(-1)]).toEqual([100, 'n2', 'n101']);
  });

  it('are kept for no Normal when all are Warnings, and make room for a Warning, oldest first', () => {
    const { queue, dropped } = queueOf(2);
    for (const name of ['w1', 'w2']) queue.add(series(name, 'Warning'), 0);
    queue.add(series('n1'), 0);
    expect([queue.size, dropped()]).toEqual([2, 1]);
    queue.add(series('w3', 'Warning'), 0);
    expect([queue.size, dropped()]).toEqual([2, 2]);
    expect(namesOf(queue)).toEqual(['w2', 'w3']);
  });

  it('are dropped as Normals after two minutes', () => {
    const { queue, dropped } = queueOf(10);
    queue.add(series('n1'), 0);
    queue.add(series('n2'), 1);
    queue.add(series('w1', 'Warning'), 0);
    expect(namesOf(queue, 120_001)).toEqual(['w1', 'n2']);
    expect(dropped()).toBe(1);
  });
});
