import { describe, expect, it } from 'vitest';
import { ExpectIgnorers } from '../../../../tunnels/http/command-dispatcher.ts';

const baseOf = (port: number, identity = 'base-1') => ({ identity, ip: '10.0.0.1', port });

describe('ExpectIgnorers', () => {
  it('knows a base at its address only, until it is taken out', () => {
    const ignorers = new ExpectIgnorers();
    ignorers.add(baseOf(1));
    expect([baseOf(1), baseOf(2), baseOf(1, 'base-2')].map((base) => ignorers.has(base))).toEqual([true, false, false]);
    ignorers.delete(baseOf(1));
    expect(ignorers.has(baseOf(1))).toBe(false);
  });

  it('forgets the oldest of more than a thousand', () => {
    const ignorers = new ExpectIgnorers();
    for (let port = 1; port <= 1_001; port++) ignorers.add(baseOf(port));
    expect([1, 2, 1_001].map((port) => ignorers.has(baseOf(port)))).toEqual([false, true, true]);
  });
});
