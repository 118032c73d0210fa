import { execFileSync } from 'node:child_process';
import fs, { closeSync, constants, openSync, readSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger, gatheredOutput } from '../../src/logger.ts';
import { eventually } from '../support/eventually.ts';

let directory: string;
let path: string;
let file: number;
let dropped: number[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  directory = await mkdtemp(join(tmpdir(), 'output-'));
  path = join(directory, 'log');
  file = openSync(path, 'a');
  dropped = [];
});

afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  closeSync(file);
  await rm(directory, { recursive: true });
});

const output = (fd = file) => gatheredOutput({ fd, onDropped: (lines) => dropped.push(lines) });
const textOf = (): Promise<string> => readFile(path, 'utf8');

it('lines wait for others, 200 ms at most', async () => {
  const logger = createLogger('info', output());
  logger.info('one');
  vi.advanceTimersByTime(199);
  logger.info('two');
  expect(await textOf()).toBe('');
  vi.advanceTimersByTime(1);
  await eventually(async () => expect((await textOf()).split('\n')).toHaveLength(3));
  logger.info('three');
  vi.advanceTimersByTime(200);
  await eventually(async () => expect((await textOf()).split('\n')).toHaveLength(4));
});

it('many lines wait for no timer', async () => {
  const logger = createLogger('info', output());
  for (let line = 0; line < 100; line++) logger.info({ line }, 'said');
  await eventually(async () => expect((await textOf()).length).toBeGreaterThan(4_000));
});

it('a fatal line waits for nothing', async () => {
  const logger = createLogger('info', output());
  logger.info('before');
  logger.fatal('the end');
  expect(await textOf()).toMatch(/before.*\n.*the end/);
});

it('lines that a full disk did not take are there when it has room', async () => {
  const write = vi
    .spyOn(fs, 'write')
    .mockImplementation(((_fd: number, _part: string, done: fs.NoParamCallback) =>
      done(Object.assign(new Error('no space'), { code: 'ENOSPC' }))) as never);
  const writer = output();
  for (const line of ['one\n', 'two\n', 'three\n']) writer.write(line);
  vi.advanceTimersByTime(400);
  expect(write).toHaveBeenCalledTimes(2);
  write.mockRestore();
  vi.advanceTimersByTime(200);
  await eventually(async () => expect(await textOf()).toBe('one\ntwo\nthree\n'));
  expect(dropped).toEqual([]);
});

it('a pipe that is full holds up no exit', () => {
  const program = `
    import { gatheredOutput } from '${new URL('../../src/logger.ts', import.meta.url).href}';
    const output = gatheredOutput({ onDropped: () => {} });
    for (let line = 0; line < 900; line++) output.write('x'.repeat(1023) + '\\n');
    setImmediate(() => process.exit(3));
  `;
  // Its reader takes nothing until it has ended.
  const end = join(directory, 'end');
  execFileSync('mkfifo', [end]);
  const shell = '{ "$0" --input-type=module -e "$1"; echo $? >"$2"; } | { cat "$2"; cat >/dev/null; }';
  const code = execFileSync('sh', ['-c', shell, process.execPath, program, end], { timeout: 60_000 });
  expect(String(code).trim()).toBe('3');
});

describe('a pipe', () => {
  const ends: number[] = [];
  const open = (mode: number): number => {
    const end = openSync(join(directory, 'pipe'), mode | constants.O_NONBLOCK);
    ends.push(end);
    return end;
  };

  beforeEach(() => execFileSync('mkfifo', [join(directory, 'pipe')]));
  afterEach(() => ends.splice(0).forEach(closeSync));

  it('that nobody reads for a while keeps a megabyte of lines back, and the number of those that are lost', async () => {
    const reader = open(constants.O_RDONLY);
    const writer = output(open(constants.O_WRONLY));
    const lines = Array.from({ length: 3_000 }, (_, index) => `${String(index).padStart(1_023, '0')}\n`);
    for (const line of lines) writer.write(line);

    let text = '';
    const part = Buffer.alloc(65_536);
    await eventually(() => {
      vi.advanceTimersByTime(200);
      text += part.toString('utf8', 0, readAtOnce(reader, part));
      expect(dropped).toHaveLength(1);
      expect(text.length + 1_024 * (dropped[0] ?? 0)).toBe(1_024 * lines.length);
    });
    expect(text).toBe(lines.slice(0, text.length / 1_024).join(''));
    expect(text.length).toBeGreaterThan(1_000_000);
    expect(text.length).toBeLessThan(1_200_000);
  });

  it('whose reader has gone is left alone, also at the end', async () => {
    const reader = open(constants.O_RDONLY);
    const logger = createLogger('info', output(open(constants.O_WRONLY)));
    ends.splice(ends.indexOf(reader), 1).forEach(closeSync);
    logger.info('one');
    logger.fatal('the end');
    const write = vi.spyOn(fs, 'write');
    await eventually(() => {
      write.mockClear();
      logger.info('another');
      vi.advanceTimersByTime(1_000);
      expect(write).not.toHaveBeenCalled();
    });
    expect(dropped).toEqual([]);
  });
});

/** 0 where nothing is there to be read. */
function readAtOnce(end: number, part: Buffer): number {
  try {
    return readSync(end, part);
  } catch (error) {
    expect(error).toMatchObject({ code: 'EAGAIN' });
    return 0;
  }
}
