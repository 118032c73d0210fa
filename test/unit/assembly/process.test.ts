import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createProcess } from '../../../src/assembly/process.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import type { ControllerDefinition } from '../../../src/reconcile/controller-definition.ts';
import { settle } from '../../support/fake-clock.ts';
import { staticAccess } from '../kube/support/rig.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }));
afterEach(() => void vi.useRealTimers());

it('a process ends 10 s after it is stopped, though a part goes on', async () => {
  const endless = (): Promise<never> => new Promise(() => {});
  const build = () => ({ groups: [[{ name: 'stuck', run: endless }]] });
  const stuck: ControllerDefinition = { name: 'stuck', summary: '', access: [], build };
  const manager = await createProcess({
    config: { ...loadConfig({ ENABLE_HTTP_TUNNEL: 'true' }, 'host-1'), healthProbePort: 0, metricsPort: 0 },
    access: { ...staticAccess(new URL('http://127.0.0.1:1')), run: endless },
    logger: silentLogger,
    metrics: createMetrics(),
    version: '1.0.0',
    controllers: [stuck],
  });
  const stopping = new AbortController();
  let isEnded = false;
  const ended = manager.run(stopping.signal).then(() => {
    isEnded = true;
  });
  await settle();
  stopping.abort();
  await settle();
  vi.advanceTimersByTime(9_999);
  await settle();
  expect(isEnded).toBe(false);
  vi.advanceTimersByTime(1);
  await ended;
});
