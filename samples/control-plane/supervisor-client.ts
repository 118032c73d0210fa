import { type ChildProcess, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { rmSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { SupervisorEvent, SupervisorRequest } from './supervisor-messages.ts';
import type { ComponentName } from './versions.ts';

const SUPERVISOR_PROGRAM = fileURLToPath(new URL('./supervisor.ts', import.meta.url));

interface SupervisorEvents {
  started: [component: ComponentName, pid: number];
  exited: [component: ComponentName, reason: string];
}

/** The owner's end of the channel to `supervisor.ts`. While it is open it keeps this process alive. */
export class Supervisor extends EventEmitter<SupervisorEvents> {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  /** Asked to start and not seen to exit; the process id once it is known. */
  readonly #running = new Map<ComponentName, number | undefined>();
  /** Removed, with everything in it, when the supervisor ends. */
  readonly directory: string;

  private constructor(process: ChildProcess, ended: Promise<void>, directory: string) {
    super();
    this.#process = process;
    this.#ended = ended;
    this.directory = directory;
    process.on('message', (event: SupervisorEvent) => this.#onEvent(event));
    process.once('exit', () => this.#killOrphans());
  }

  static async start(): Promise<Supervisor> {
    const { NODE_OPTIONS: _ours, ...env } = process.env;
    const child = fork(SUPERVISOR_PROGRAM, {
      detached: true, // a session of its own
      execArgv: [],
      env,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    const ended = endOf(child);
    const ready = once(child, 'message') as Promise<[SupervisorEvent]>;
    const first = await Promise.race([ready.then(([event]) => event), ended]);
    if (first?.type !== 'ready') throw new Error('the control plane supervisor ended before it was ready');
    return new Supervisor(child, ended, first.directory);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** False once a stop has begun, or when the supervisor is gone. */
  get isConnected(): boolean {
    return this.#process.connected;
  }

  /** Throws when the supervisor is gone. */
  request(request: SupervisorRequest): void {
    if (!this.#process.connected) throw new Error('the control plane has stopped');
    if (request.type === 'start') this.#running.set(request.component, undefined);
    this.#process.send(request);
  }

  /** Resolves when every component has exited and the directory is gone; may be called again. */
  async stop(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    await this.#ended;
  }

  #onEvent(event: SupervisorEvent): void {
    if (event.type === 'started') {
      this.#running.set(event.component, event.pid);
      this.emit('started', event.component, event.pid);
    }
    if (event.type === 'exited') {
      this.#running.delete(event.component);
      this.emit('exited', event.component, event.reason);
    }
  }

  /** Only a supervisor that was itself killed leaves any. */
  #killOrphans(): void {
    for (const [component, pid] of this.#running) {
      if (pid !== undefined) killQuietly(pid);
      this.emit('exited', component, 'the supervisor ended');
    }
    this.#running.clear();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited meanwhile, which is what we want.
  }
}

/** Rejects, with what the program wrote, when it ends with anything but success. */
function endOf(child: ChildProcess): Promise<void> {
  const ended = waitForEnd(child);
  ended.catch(() => {}); // told to whoever awaits it, which may be nobody yet
  return ended;
}

async function waitForEnd(child: ChildProcess): Promise<void> {
  // Not the event "close": it never comes after a disconnect from our side.
  const [[code, signal], complaints] = await Promise.all([
    once(child, 'exit'),
    child.stderr === null ? '' : text(child.stderr),
  ]);
  if (code !== 0) throw new Error(`the control plane supervisor ended with ${signal ?? `code ${code}`}: ${complaints}`);
}
