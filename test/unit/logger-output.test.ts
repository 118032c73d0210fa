import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLogger, gatheredOutput } from '../../src/logger.ts';
import { eventually } from '../support/eventually.ts';
import { FakeClock } from '../support/fake-clock.ts';

let directory: string;
let path: string;
let file: number;
let clock: FakeClock;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'output-'));
  path = join(directory, 'log');
  file = openSync(path, 'a');
  clock = new FakeClock();
});

afterEach(async () => {
  closeSync(file);
  await rm(directory, { recursive: true });
});

const output = () => gatheredOutput((callback, delayMs) => clock.setTimer(callback, delayMs), file);
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
