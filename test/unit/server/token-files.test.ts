import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../../src/logger.ts';
import { TokenFiles, type TokenFilesOptions } from '../../../src/server/token-files.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { recordingLogger } from '../tunnels/mqtt/mqtt-world.ts';

describe('tokens of clients', () => {
  const directories: string[] = [];
  afterEach(async () => {
    for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true });
  });

  async function load(files: Record<string, string>, options: Partial<TokenFilesOptions> = {}) {
    const directory = await mkdtemp(join(tmpdir(), 'tokens-'));
    directories.push(directory);
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
    const clock = new FakeClock();
    return {
      directory,
      clock,
      tokens: await TokenFiles.load({ directory, owner: 'group', clock, logger: silentLogger, ...options }),
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

  it('are left out alone where they are short, or whose file cannot be of an owner', async () => {
    const log = recordingLogger();
    const isOwner = (name: string) => name.includes('.');
    const files = { 't1.shop': `short\n${ONE}`, nobody: TWO };
    const { tokens, clock } = await load(files, { logger: log.logger, isOwner });
    expect([namesIn(tokens, ONE), tokens.namesOf('short'), tokens.namesOf(TWO)]).toEqual([
      ['t1.shop'],
      undefined,
      undefined,
    ]);
    const faults = ['nobody is not the name of a group', 'a token of group t1.shop has fewer than 32 characters'];
    expect(log.lines.map(({ msg, faults: found }) => [msg, found])).toEqual([['tokens are left out', faults]]);
    const stop = new AbortController();
    const running = tokens.run(stop.signal);
    clock.advance(60_000);
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    expect(log.lines).toHaveLength(1);
    stop.abort();
    await running;
  });

  it('are read again every minute; what cannot be used changes nothing', async () => {
    const { tokens, directory, clock } = await load({ external: ONE });
    const stop = new AbortController();
    const running = tokens.run(stop.signal);
    await writeFile(join(directory, 'external'), TWO);
    clock.advance(60_000);
    await vi.waitFor(() => expect(namesIn(tokens, TWO)).toEqual(['external']));
    expect(tokens.namesOf(ONE)).toBeUndefined();
    await rm(directory, { recursive: true });
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    clock.advance(60_000);
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    expect(namesIn(tokens, TWO)).toEqual(['external']);
    stop.abort();
    await running;
  });
});
