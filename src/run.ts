import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createProcess } from './assembly/process.ts';
import { declaresWebhook, loadControllers, REGISTRY } from './assembly/registry.ts';
import { systemClock } from './clock.ts';
import { ConfigError, loadConfig } from './config/config.ts';
import { ControllerError } from './errors.ts';
import { loadClusterAccess } from './kube/auth/kubeconfig.ts';
import { createLogger, gatheredOutput } from './logger.ts';
import { createMetrics } from './metrics.ts';

/**
 * Reads the configuration, runs its controllers until SIGTERM or SIGINT, and resolves with the exit code: 2 for a wrong
 * configuration, 1 for a failure. Default registry: the controllers of this program.
 */
export async function runProcess(registry = REGISTRY): Promise<number> {
  const config = readConfig([...registry.keys()]);
  if (config === undefined) return 2;
  const onDropped = (lines: number): void =>
    logger.warn({ lines }, 'log lines were dropped: stdout was full, or failed');
  const output = gatheredOutput({ later: systemClock.setTimer, onDropped });
  const logger = createLogger(config.logLevel, output);
  const { env, controllers, clientId, isCluster, pod, withoutEffect } = config;
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  logger.info({ version, env, controllers, clientId, isCluster, pod }, 'module-controller starts');
  if (withoutEffect.length > 0)
    logger.warn({ variables: withoutEffect }, 'these variables have no effect in this version');
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      logger.info({ signal }, 'stopping');
      stopping.abort();
    });
  }
  process.on('unhandledRejection', (err) => {
    logger.fatal({ err }, 'unhandled rejection');
    process.exit(1);
  });
  try {
    const metrics = createMetrics();
    metrics.collectProcessMetrics();
    const access = await loadClusterAccess({
      kubeconfigPath: config.kubeconfig,
      inClusterHost: process.env.KUBERNETES_SERVICE_HOST,
      inClusterPort: process.env.KUBERNETES_SERVICE_PORT,
      clock: systemClock,
      logger,
    });
    const loaded = await loadControllers(registry, controllers);
    const manager = await createProcess({
      config,
      access,
      logger,
      metrics,
      version,
      controllers: loaded,
      isWebhookKnown: (key) => declaresWebhook(registry, key),
    });
    await manager.run(stopping.signal);
    logger.info('stopped');
    return 0;
  } catch (err) {
    logger.fatal({ err }, 'module-controller failed');
    return err instanceof ControllerError && err.code === 'Kube.ConfigInvalid' ? 2 : 1;
  }
}

function readConfig(known: readonly string[]) {
  try {
    return loadConfig(process.env, hostname(), known);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.code}: ${error.message}\n`);
    return undefined;
  }
}
