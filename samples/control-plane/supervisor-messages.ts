import type { ComponentName } from './versions.ts';

/** What the control plane's owner asks of its supervisor. There is no "stop": closing the channel is it. */
export type SupervisorRequest =
  | { type: 'start'; component: ComponentName; command: string; args: string[]; logPath: string }
  | { type: 'signal'; component: ComponentName; signal: NodeJS.Signals };

export type SupervisorEvent =
  | { type: 'ready'; directory: string }
  | { type: 'started'; component: ComponentName; pid: number }
  | { type: 'exited'; component: ComponentName; reason: string };
