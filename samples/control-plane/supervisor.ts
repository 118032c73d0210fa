/**
 * A program, one per control plane: it owns the components' processes and the temporary directory.
 *
 * Node cannot ask Linux to end children with their parent, so this small process stands between them. It lives in
 * a session of its own, out of reach of a terminal's Ctrl-C, and listens on the channel to its owner. The channel
 * closes when the owner stops the control plane and also when the owner dies, of SIGKILL too: in every case the
 * components are killed, the directory goes, and then this process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SupervisorEvent, SupervisorRequest } from './supervisor-messages.ts';
import type { ComponentName } from './versions.ts';

const { PATH, GOGC, GOMAXPROCS } = process.env;
const directory = mkdtempSync(join(tmpdir(), 'control-plane-'));
/** Emptied by the exits. */
const children = new Map<ComponentName, ChildProcess>();
let isEnding = false;

function tell(event: SupervisorEvent): void {
  // The owner may be gone at any time; the closed channel then ends us anyway.
  if (process.connected) process.send?.(event, undefined, undefined, () => {});
}

function start({ component, command, args, logPath }: Extract<SupervisorRequest, { type: 'start' }>): void {
  if (isEnding) return;
  const log = openSync(logPath, 'a', 0o600);
  const child = spawn(command, args, {
    cwd: directory,
    // Nothing of a component stays outside the directory. Of the owner's environment only the settings of Go's runtime
    // reach a component: they trade memory for CPU time and change nothing that a client sees.
    env: { PATH, HOME: directory, TMPDIR: directory, GOGC, GOMAXPROCS },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  children.set(component, child);
  child.once('spawn', () => tell({ type: 'started', component, pid: child.pid ?? 0 }));
  child.once('error', (error) => forget(component, error.message));
  child.once('exit', (code, signal) =>
    forget(component, signal === null ? `exit code ${code}` : `killed by ${signal}`),
  );
}

function forget(component: ComponentName, reason: string): void {
  if (!children.delete(component)) return;
  tell({ type: 'exited', component, reason });
  if (isEnding) void leaveWhenAlone();
}

/** The data is thrown away, so nothing is gained by a gentle stop; SIGKILL also ends a process that is stopped. */
function end(): void {
  if (isEnding) return;
  isEnding = true;
  for (const child of children.values()) child.kill('SIGKILL');
  void leaveWhenAlone();
}

async function leaveWhenAlone(): Promise<void> {
  if (children.size > 0) return;
  try {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    process.exit(0);
  } catch (error) {
    process.stderr.write(`cannot remove ${directory}: ${String(error)}\n`);
    process.exit(1);
  }
}

process.stderr.on('error', () => {}); // the owner, who reads it, may be gone
process.on('message', (request: SupervisorRequest) => {
  if (request.type === 'start') start(request);
  else children.get(request.component)?.kill(request.signal);
});
process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);

tell({ type: 'ready', directory });
if (!process.connected) end();
