import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger, gatheredOutput } from '../../src/logger.ts';
import { eventually } from '../support/eventually.ts';
import { FakeClock } from '../support/fake-clock.ts';

let directory: string;
let path: string;
let file: number;
let clock: FakeClock;
let dropped: number[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'output-'));
  path = join(directory, 'log');
  file = openSync(path, 'a');
  clock = new FakeClock();
  dropped = [];
});

afterEach(async () => {
  closeSync(file);
  await rm(directory, { recursive: true });
});

const output = (fd = file) =>
  gatheredOutput({
    later: (callback, delayMs) => void clock.setTimer(callback, delayMs),
    fd,
    onDropped: (lines) => dropped.push(lines),
  });
const textOf = (): Promise<string> => readFile(path, 'utf8');

it('lines wait for others, 50 ms at most, with one timer', async () => {
  const logger = createLogger('info', output());
  logger.info('one');
  clock.advance(49);
  logger.info('two');
  expect(await textOf()).toBe('');
  clock.advance(1);
  await eventually(async () => expect((await textOf()).split('\n')).toHaveLength(3));
  logger.info('three');
  clock.advance(50);
  await eventually(async () => expect((await textOf()).split('\n')).toHaveLength(4));
});

it('many lines wait for no timer', async () => {
  const logger = createLogger('info', output());
  for (let line = 0; line < 100; line++) logger.info({ line }, 'said');
  await eventually(async () => expect((await textOf()).length).toBeGreaterThan(4_000));
});

it('lines that come while others are being written are as soon there', async () => {
  const logger = createLogger('info', output());
  for (let line = 0; line < 100; line++) logger.info({ line }, 'said');
  logger.info('the last one');
  clock.advance(50); // the write has not ended: nothing else has run since
  await eventually(async () => expect(await textOf()).toContain('the last one'));
});

it('a fatal line waits for nothing', async () => {
  const logger = createLogger('info', output());
  logger.info('before');
  logger.fatal('the end');
  expect(await textOf()).toMatch(/before.*\n.*the end/);
});

it('a disk that was full gets the number of lines that it did not take', async () => {
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  const taken: string[] = [];
  let isFull = true;
  const writer = gatheredOutput({
    later: (callback, delayMs) => void clock.setTimer(callback, delayMs),
    write: (_fd, part, done) => {
      if (!isFull) taken.push(part.toString());
      done(isFull ? full : null, isFull ? 0 : part.length);
    },
    onDropped: (lines) => dropped.push(lines),
  });
  for (const line of ['one\n', 'two\n', 'three\n']) writer.write(line);
  clock.advance(50);
  writer.write('four\n');
  clock.advance(50);
  isFull = false;
  expect(dropped).toEqual([]);
  writer.write('five\n');
  clock.advance(50);
  expect([taken, dropped]).toEqual([['five\n'], [4]]);
  writer.write('six\n');
  clock.advance(50);
  expect([taken, dropped]).toEqual([['five\n', 'six\n'], [4]]);
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
      clock.advance(100);
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
    await eventually(() => {
      clock.advance(50);
      logger.info('another');
      expect(clock.pending).toBe(0);
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
