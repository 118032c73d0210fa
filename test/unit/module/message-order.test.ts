import { describe, expect, it } from 'vitest';
import { MessageOrder } from '../../../src/module/message-order.ts';

describe('a list', () => {
  it('is old when it was asked for before one that was taken', () => {
    const order = new MessageOrder();
    order.listTaken(100);
    expect(order.listedAt).toBe(100);
    expect([99, 100, 101].map((askedAt) => order.isOldList({ askedAt }))).toEqual([true, false, false]);
  });

  it('is old when it comes again, or is older than what was heard', () => {
    const order = new MessageOrder();
    const lists = [1_000, 1_000, 999, 1_001, undefined, 1_000].map((publishedAt) =>
      order.isOldList(publishedAt === undefined ? {} : { publishedAt }),
    );
    expect(lists).toEqual([false, true, true, false, false, true]);
  });

  it('of a process that was started anew counts by its own clock', () => {
    const order = new MessageOrder();
    order.isOldList({ publishedAt: 10_000 });
    order.restart(9_000);
    expect([8_999, 9_000].map((publishedAt) => order.isOldList({ publishedAt }))).toEqual([true, false]);
  });
});

describe('an answer', () => {
  it('is old when it comes again, or after a newer one about the module', () => {
    const order = new MessageOrder();
    expect(order.isOldResult('a:1', 'install', 1_000)).toBe(false);
    expect(order.isOldResult('a:1', 'install', 1_000)).toBe(true);
    expect(order.isOldResult('a:1', 'install', 999)).toBe(true);
    expect(order.isOldResult('b:1', 'install', 999)).toBe(false);
  });

  it('to another command of the same millisecond is news, and so is one without a time', () => {
    const order = new MessageOrder();
    order.isOldResult('a:1', 'install', 1_000);
    expect(order.isOldResult('a:1', 'uninstall', 1_000)).toBe(false);
    expect([order.isOldResult('a:1', 'install', undefined), order.isOldResult('a:1', 'install', undefined)]).toEqual([
      false,
      false,
    ]);
  });

  it('is remembered for a minute of newer answers', () => {
    const order = new MessageOrder();
    order.isOldResult('a:1', 'install', 1_000);
    order.isOldResult('b:1', 'install', 61_000);
    expect(order.isOldResult('a:1', 'install', 1_000)).toBe(true);
    order.isOldResult('b:1', 'install', 61_001);
    expect(order.isOldResult('a:1', 'install', 1_000)).toBe(false);
  });

  it('is remembered among 4,000, and the oldest is forgotten for a further one', () => {
    const order = new MessageOrder();
    for (let index = 0; index < 4_000; index++) order.isOldResult(`m${index}:1`, 'install', index);
    expect(order.isOldResult('m0:1', 'install', 0)).toBe(true);
    order.isOldResult('one-more:1', 'install', 4_000);
    expect([1, 0].map((index) => order.isOldResult(`m${index}:1`, 'install', index))).toEqual([true, false]);
  });

  it('keeps its place among the newest when it is renewed', () => {
    const order = new MessageOrder();
    order.isOldResult('a:1', 'install', 1_000);
    order.isOldResult('b:1', 'install', 1_001);
    order.isOldResult('a:1', 'uninstall', 61_000);
    order.isOldResult('c:1', 'install', 61_500);
    expect(order.isOldResult('b:1', 'install', 1_001)).toBe(false);
  });

  it('is forgotten when another process is heard', () => {
    const order = new MessageOrder();
    order.isOldResult('a:1', 'install', 1_000);
    order.restart(undefined);
    expect(order.isOldResult('a:1', 'install', 1_000)).toBe(false);
  });
});
