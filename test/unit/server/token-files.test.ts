import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../../src/logger.ts';
import { TokenFiles } from '../../../src/server/token-files.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('tokens of clients', () => {
  const directories: string[] = [];
  afterEach(async () => {
    for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
  });

  async function load(files: Record<string, string>) {
    const directory = await mkdtemp(join(tmpdir(), 'tokens-'));
    directories.push(directory);
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
    const clock = new FakeClock();
    return {
      directory,
      clock,
      tokens: await TokenFiles.load({ directory, owner: 'group', clock, logger: silentLogger }),
    };
  }
  const [ONE, TWO] = ['1'.repeat(32), '2'.repeat(32)];
  const namesIn = (tokens: TokenFiles, token: string) => [...(tokens.namesOf(token) ?? [])].sort();

  it('are files named as their owners', async () => {
    const { tokens } = await load({ external: `${ONE}\n${TWO}\n`, exporter: ONE, '..data': 'short' });
    expect(namesIn(tokens, ONE)).toEqual(['exporter', 'external']);
    expect(namesIn(tokens, TWO)).toEqual(['external']);
    expect(tokens.namesOf('other')).toBeUndefined();
  });

  it('must not be short', async () => {
    await expect(load({ external: 'x'.repeat(31) })).rejects.toThrow('a token of group external has fewer than 32');
  });

  it('are read again every minute; what cannot be used changes nothing', async () => {
    const { tokens, directory, clock } = await load({ external: ONE });
    const stop = new AbortController();
    const running = tokens.run(stop.signal);
    await writeFile(join(directory, 'external'), TWO);
    clock.advance(60_000);
    await vi.waitFor(() => expect(namesIn(tokens, TWO)).toEqual(['external']));
    expect(tokens.namesOf(ONE)).toBeUndefined();
    await writeFile(join(directory, 'external'), 'short');
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    clock.advance(60_000);
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    expect(namesIn(tokens, TWO)).toEqual(['external']);
    stop.abort();
    await running;
  });
});
