import { AuditLog, type AuditLogOption } from './audit-log.ts';
import { ensureBinaries } from './binaries.ts';
import { bootstrap, type RunningParts } from './bootstrap.ts';
import type { Component } from './component.ts';
import { ControlPlaneAccess } from './control-plane-access.ts';
import { releasePort } from './ports.ts';
import type { RequestCounts, RequestFilter } from './request-counts.ts';
import { Supervisor } from './supervisor-client.ts';
import type { ComponentName } from './versions.ts';

export interface ControlPlaneOptions {
  /** Count the API requests, for `requestCounts`; of some users, or of all. Default false. */
  auditLog?: AuditLogOption;
  /** etcd does not wait for the disk; the data outlives a crash of etcd, not one of the machine. Default true. */
  unsafeNoFsync?: boolean;
  /**
   * kube-controller-manager has one ServiceAccount for each of its controllers, and their rights, as kubeadm sets it up:
   * requests are counted and prioritized by controller. Default false, since each start takes three seconds more.
   */
  controllerAccounts?: boolean;
  /** Added behind our own arguments, so a repeated one wins. Default none. */
  extraArgs?: Partial<Record<ComponentName, string[]>>;
  /** Gets a line at each step, each few seconds of a build, and at each exit of a component. Default: nobody. */
  onProgress?: (line: string) => void;
}

/** A Kubernetes control plane on 127.0.0.1. It keeps this process alive until `stop`. */
export class ControlPlane extends ControlPlaneAccess {
  readonly #supervisor: Supervisor;
  readonly #parts: RunningParts;
  readonly #auditLog: AuditLog | undefined;

  constructor(supervisor: Supervisor, parts: RunningParts, options: { auditLog: boolean }) {
    super({ ...parts, directory: parts.layout.directory });
    this.#supervisor = supervisor;
    this.#parts = parts;
    this.#auditLog = options.auditLog ? new AuditLog(parts.layout.auditLog) : undefined;
  }

  /** The process that ends the components when this one dies. */
  get supervisorPid(): number {
    return this.#supervisor.pid;
  }

  component(name: ComponentName): Component {
    return this.#parts.components[name];
  }

  /** Every request answered until now: a mark for `requestCounts({ since })`. */
  mark(): Promise<RequestCounts> {
    return this.requestCounts();
  }

  /** Requests answered, of all identities and since the start unless said otherwise. Needs the option `auditLog`. */
  async requestCounts({ since, ...filter }: RequestFilter & { since?: RequestCounts } = {}): Promise<RequestCounts> {
    if (this.#auditLog === undefined) throw new Error('request counts need startControlPlane({ auditLog: true })');
    const counts = (await this.#auditLog.read()).of(filter);
    return since === undefined ? counts : counts.since(since);
  }

  /** Resolves when every process has exited and the directory is gone; may be called again. */
  async stop(): Promise<void> {
    const clients = this.#parts.probes.map((client) => client.close());
    await Promise.all([this.#supervisor.stop(), this.#auditLog?.close(), this.closeClients(), ...clients]);
    this.#parts.ports.forEach(releasePort);
  }
}

/** Resolves in about four seconds (the first time on a machine: minutes of build) with everything ready. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { auditLog = false, unsafeNoFsync = true, extraArgs = {}, onProgress = () => {} } = options;
  const { controllerAccounts = false } = options;
  const binaries = await ensureBinaries({ onProgress });
  const startedAt = performance.now();
  const supervisor = await Supervisor.start();
  try {
    supervisor.on('exited', (component, reason) => {
      if (supervisor.isConnected) onProgress(`${component} has ended: ${reason}`);
    });
    const parts = await bootstrap({ supervisor, binaries, auditLog, unsafeNoFsync, controllerAccounts, extraArgs });
    const tookSeconds = (performance.now() - startedAt) / 1000;
    onProgress(`control plane ready at ${parts.server} after ${tookSeconds.toFixed(1)} s`);
    return new ControlPlane(supervisor, parts, { auditLog: auditLog !== false });
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
}
