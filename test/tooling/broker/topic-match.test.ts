import { describe, expect, it } from 'vitest';
import { isTopicMatch } from '../../../samples/broker/recorder.ts';

describe('isTopicMatch', () => {
  it.each([
    ['a/b', 'a/b', true],
    ['a/b', 'a/c', false],
    ['a/b', 'a/+', true],
    ['a/b/c', 'a/+', false],
    ['a', 'a/+', false],
    ['a/b/c', 'a/#', true],
    ['a', 'a/#', true],
    ['b/c', 'a/#', false],
    ['a/b/c', '+/+/+', true],
    ['a/b', 'a', false],
    ['a', 'a/b', false],
  ])('topic %s under filter %s: %s', (topic, filter, isMatch) => {
    expect(isTopicMatch(topic, filter)).toBe(isMatch);
  });
});
