import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Haproxy } from '../../../samples/balancer/haproxy.ts';

/**
 * Speaks as HAProxy does. `-c` accepts everything without `refused`. As a master it notes its process, and loads what
 * has no `taken`; what has `silent` it never answers, and with `end` it ends.
 */
const STAND_IN = `#!${process.execPath}
const { appendFileSync, readFileSync } = require('node:fs');
const path = process.argv.at(-1);
const text = () => readFileSync(path, 'utf8');
if (process.argv.includes('-c')) process.exit(text().includes('refused') ? 1 : 0);
appendFileSync(path + '.masters', process.pid + '\\n');
const load = () => {
  if (text().includes('end')) process.exit(3);
  if (text().includes('silent')) return;
  if (!text().includes('taken')) return process.stderr.write('[NOTICE] (1) : Loading success.\\n');
  process.stderr.write('[ALERT] (1) : Starting frontend port-80: cannot bind socket (Address already in use)\\n');
  process.stderr.write('[WARNING] (1) : Reexecuting Master process in waitpid mode\\n');
};
process.on('SIGUSR2', load);
setInterval(() => {}, 60_000);
load();
`;

const WAIT = { timeout: 30_000 };

let directory: string;
let haproxy: Haproxy;
let said: string[];

function mastersOf(): number[] {
  return readFileSync(join(directory, 'haproxy.cfg.masters'), 'utf8').trim().split('\n').map(Number);
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'haproxy-'));
  const binary = join(directory, 'haproxy');
  writeFileSync(binary, STAND_IN);
  chmodSync(binary, 0o755);
  said = [];
  const say = (line: string): void => void said.push(line);
  haproxy = new Haproxy({ directory, say, binary, loadTimeoutMs: 30_000, restartAfterMs: 1 });
});

afterEach(async () => {
  await haproxy.stop();
  rmSync(directory, { recursive: true });
});

describe('the HAProxy of the sample balancer', () => {
  it('takes one configuration after the other in one master', async () => {
    await haproxy.load('one');
    await haproxy.load('two');
    expect(mastersOf()).toHaveLength(1);
    expect(said).toEqual([]);
  });

  it('keeps what it has where the check refuses the next one', async () => {
    await haproxy.load('one');
    await expect(haproxy.load('refused')).rejects.toThrow();
    expect(readFileSync(join(directory, 'haproxy.cfg'), 'utf8')).toBe('one');
  });

  it('says so when a configuration that was checked cannot be loaded, and takes it later', async () => {
    await haproxy.load('one');
    await expect(haproxy.load('taken')).rejects.toThrow('HAProxy could not load it');
    expect(said).toEqual([expect.stringContaining('Address already in use')]);
    // What an HAProxy has that is started again.
    expect(readFileSync(join(directory, 'haproxy.cfg'), 'utf8')).toBe('one');
    // Whatever runs now: the former one is loaded again when the feed goes back to it.
    await haproxy.load('one');
    await expect(haproxy.load('taken')).rejects.toThrow('HAProxy could not load it');
    expect(mastersOf()).toHaveLength(1);
  });

  it('waits no longer than its time for an answer that does not come', async () => {
    const say = (line: string): void => void said.push(line);
    const impatient = new Haproxy({ directory, say, binary: join(directory, 'haproxy'), loadTimeoutMs: 50 });
    await expect(impatient.load('silent')).rejects.toThrow('HAProxy has not loaded it within 0.05 s');
    await impatient.stop();
  });

  it('is started again after it has ended, with what it had', async () => {
    await haproxy.load('one');
    process.kill(mastersOf()[0] ?? Number.NaN, 'SIGKILL');
    await vi.waitFor(() => expect(mastersOf()).toHaveLength(2), WAIT);
    expect(said).toEqual(['HAProxy ended with SIGKILL: it is started again']);
    await haproxy.load('two');
    expect(mastersOf()).toHaveLength(2);
  });

  it('is started again where it ends at once, until a configuration is one that it takes', async () => {
    await expect(haproxy.load('end')).rejects.toThrow('HAProxy ended with 3');
    await vi.waitFor(() => expect(mastersOf().length).toBeGreaterThan(2), WAIT);
    await vi.waitFor(() => haproxy.load('one'), WAIT);
  });

  it('stays away after it was stopped', async () => {
    await haproxy.load('one');
    await haproxy.stop();
    expect(said).toEqual([]);
    expect(mastersOf()).toHaveLength(1);
  });
});
