import { expect, it } from 'vitest';
import { ServerVersion } from '../../../src/kube/server-version.ts';
import { ApiError } from '../../../src/kube/transport/api-error.ts';
import { silentLogger } from '../../../src/logger.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

async function started(answers: readonly unknown[]) {
  const clock = new FakeClock();
  const paths: string[] = [];
  const lane = {
    request: <T>({ path }: { readonly path: string }): Promise<T> => {
      const answer = answers[Math.min(paths.length, answers.length - 1)];
      paths.push(path);
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as T);
    },
  };
  const version = new ServerVersion({ lane, clock, logger: silentLogger });
  const stopping = new AbortController();
  const ended = version.run(stopping.signal);
  await version.whenReady();
  const stop = (): Promise<void> => {
    stopping.abort();
    return ended;
  };
  return { version, clock, paths, stop };
}

it.each([
  ['v1.31.2', 'v1.31.2'],
  ['v1.30.14+k3s1', 'v1.30.14'],
  ['v1.29.4-gke.1043002', 'v1.29.4'],
])('of an API server that calls itself %s it is %s', async (gitVersion, expected) => {
  const { version, stop } = await started([{ gitVersion }]);
  expect(version.current).toBe(expected);
  await stop();
});

it.each([
  ['no version', {}],
  ['something else', { gitVersion: 'main' }],
  ['a refusal', new ApiError('answer 403', { status: 403 })],
])('is the tested one where the answer is %s', async (_, answer) => {
  const { version, stop } = await started([answer]);
  expect(version.current).toBe('v1.35.4');
  await stop();
});

it('follows an upgrade within ten minutes, and stays when the API server is away', async () => {
  const answers = [{ gitVersion: 'v1.34.1' }, { gitVersion: 'v1.35.0' }, new ApiError('answer 503', { status: 503 })];
  const { version, clock, paths, stop } = await started(answers);
  clock.advance(599_000);
  await settle();
  expect(version.current).toBe('v1.34.1');
  clock.advance(1_000);
  await settle();
  expect(version.current).toBe('v1.35.0');
  clock.advance(600_000);
  await settle();
  expect([version.current, paths]).toEqual(['v1.35.0', ['/version', '/version', '/version']]);
  await stop();
});
