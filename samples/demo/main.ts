/** `npm run demo`: see options.ts for the flags, the scripts for what happens. */

import { javaScript } from './java-script.ts';
import { LiveView } from './live-view.ts';
import { type DemoOptions, HELP, parseDemoOptions, UsageError } from './options.ts';
import { rolloutScript } from './rollout-script.ts';
import { Screen } from './screen.ts';
import type { Script, ScriptOf } from './script.ts';
import { simulatedScript } from './simulated-script.ts';
import { Stage } from './stage.ts';
import { runStep, StepFailure } from './step.ts';

const EXIT = { success: 0, failure: 1, usage: 2, interrupted: 130 } as const;
const SHOWN_LOG_LINES = 20;

/** Resolves at the first signal. Later ones change nothing: npm hands a Ctrl-C on that came by itself already. */
function untilInterrupted(): Promise<'interrupted'> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('interrupted'));
  });
}

interface Parts {
  readonly stage: Stage;
  readonly screen: Screen;
  readonly view: LiveView;
}

function playOf({ isRollout, isJava }: DemoOptions): ScriptOf {
  if (isRollout) return rolloutScript;
  return isJava ? javaScript : simulatedScript;
}

function scriptOf(options: DemoOptions, { screen }: Parts): Script {
  const print = (line: string): void => screen.print(line);
  const onProgress = (line: string): void => (screen.isLive ? screen.show([line]) : print(`  ${line}`));
  return playOf(options)(options, { onProgress, print });
}

async function runSteps({ steps }: Script, options: DemoOptions, { stage, screen, view }: Parts): Promise<void> {
  for (const step of steps) {
    const startedAt = performance.now();
    if (step.command !== undefined) screen.print(`${screen.paint('bold', '$')} ${step.command()}`);
    await runStep(step, { stage, timeoutMs: options.stepTimeoutMs });
    const tookSeconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    view.draw();
    screen.print(`${screen.paint('green', '✓')} ${step.name} (${tookSeconds} s)`);
    if (step.name === 'controller is ready') screen.print(`  its log: ${stage.controller?.logPath}`);
  }
}

async function printHints({ hints }: Script, { stage, screen }: Parts): Promise<void> {
  const kubeconfig = await stage.controlPlane.kubeconfig({ user: 'admin' });
  const lines = [
    '',
    'All of it stays up. In another terminal:',
    '',
    `  export KUBECONFIG=${kubeconfig}`,
    '  kubectl get nodes,pods -o wide',
    ...hints().map((hint) => `  ${hint}`),
    '',
    'Ctrl-C stops everything and removes what belongs to it.',
  ];
  for (const line of lines) screen.print(line);
}

function printFailure(failure: unknown, { stage, screen, view }: Parts): void {
  view.draw();
  const message = failure instanceof Error ? failure.message : String(failure);
  screen.print(`${screen.paint('red', '✗')} ${message}`);
  const lastSeen = failure instanceof StepFailure ? failure.lastSeen : [];
  if (lastSeen.length > 0) screen.print('  last seen:');
  for (const line of lastSeen) screen.print(`    ${line}`);
  for (const controller of stage.processes) {
    const log = controller.tail(SHOWN_LOG_LINES);
    if (log.length > 0) screen.print(`  the end of the ${controller.name}'s log:`);
    for (const line of log) screen.print(`    ${line}`);
  }
}

async function perform(options: DemoOptions, parts: Parts): Promise<number> {
  const interrupted = untilInterrupted();
  const script = scriptOf(options, parts);
  const steps = runSteps(script, options, parts);
  steps.catch(() => {}); // when it fails after an interrupt, because all is being stopped
  if ((await Promise.race([steps, interrupted])) === 'interrupted') return EXIT.interrupted;
  if (options.isOnce) return EXIT.success;
  await printHints(script, parts);
  await interrupted;
  return EXIT.success;
}

async function run(options: DemoOptions): Promise<number> {
  const stage = new Stage();
  const screen = new Screen(process.stdout);
  const view = new LiveView(stage, screen);
  const parts = { stage, screen, view };
  process.stdout.on('resize', () => view.draw());
  try {
    return await perform(options, parts);
  } catch (failure) {
    printFailure(failure, parts);
    return EXIT.failure;
  } finally {
    view.stop();
    screen.print('stopping …');
    await stage.stop();
  }
}

try {
  const options = parseDemoOptions(process.argv.slice(2));
  if (options === undefined) console.log(HELP);
  // A step that was interrupted may still be under way: it ends with the process.
  else process.exit(await run(options));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof UsageError) console.error('Try --help.');
  process.exit(error instanceof UsageError ? EXIT.usage : EXIT.failure);
}
