import type { ContainerStatus, KubeObject, PodObject } from '../../src/kube/objects.ts';
import { ANNOTATION, TAINT } from '../../src/labels.ts';
import type { CachedLease } from '../../src/lease/lease.ts';
import { ModuleLedger } from '../../src/module/module-ledger.ts';
import { type ModuleRecord, newRecord } from '../../src/module/module-record.ts';
import { projectPod, type VPod } from '../../src/pod/vpod.ts';
import type { BaseHealth, BaseInfo } from '../../src/tunnel/base.ts';
import type { ModuleCommand, ModuleSpec, ModuleState, ModuleStatus, OperationResult } from '../../src/tunnel/module.ts';

export const MIB = 1024 * 1024;
export const BACKOFF = { baseMs: 10_000, maxMs: 300_000 };
export const LEDGER_OPTIONS = { installDeadlineMs: 300_000, uninstallDeadlineMs: 60_000, backoff: BACKOFF };

/** `biz1:1.0.0` → name and version. */
export function idOf(key: string): { name: string; version: string } {
  const [name = '', version = ''] = key.split(':');
  return { name, version };
}

/** Whether these are two versions of one module. */
export function isSibling(a: string, b: string): boolean {
  return a !== b && idOf(a).name === idOf(b).name;
}

export function urlOf(key: string): string {
  return `https://jars.example/${key.replace(':', '-')}.jar`;
}

export function makeSpec(key: string, more: Partial<ModuleSpec> = {}): ModuleSpec {
  return { ...idOf(key), url: urlOf(key), args: [], envs: {}, ...more };
}

/** `['biz1:1.0.0 ACTIVATED']` → a base's list. */
export function makeList(...lines: readonly string[]): ModuleStatus[] {
  return lines.map((line) => {
    const [key = '', state = 'ACTIVATED'] = line.split(' ');
    return { ...idOf(key), state: state as ModuleState };
  });
}

export function makeResult(command: ModuleCommand, key: string, more: Partial<OperationResult> = {}) {
  const outcome = more.outcome ?? 'done';
  const result: OperationResult = {
    command,
    module: idOf(key),
    outcome,
    code: outcome === 'done' ? 'SUCCESS' : 'FAILED',
    message: '',
    state: command === 'install' && outcome === 'done' ? 'ACTIVATED' : undefined,
    ...more,
  };
  return result;
}

export function makeLedger(): ModuleLedger {
  return new ModuleLedger(LEDGER_OPTIONS);
}

export function makeRecord(key: string, more: Partial<ModuleRecord> = {}): ModuleRecord {
  return { ...newRecord(idOf(key), 0), ...more };
}

export interface PodOptions {
  readonly name?: string;
  /** Default `ns`. */
  readonly namespace?: string;
  readonly uid?: string;
  readonly node?: string;
  /** `name:version` of each container. Default one, `biz1:1.0.0`. */
  readonly modules?: readonly string[];
  readonly url?: string;
  readonly args?: string[];
  readonly env?: { name: string; value?: string; valueFrom?: unknown }[];
  readonly createdAt?: string;
  readonly deleting?: boolean;
  /** Of a deletion. Default: not told. */
  readonly graceSeconds?: number;
  /** `lifecycle.preStop.sleep` of each container. */
  readonly sleepSeconds?: number;
  /** The annotation as it is. */
  readonly strategy?: string;
  readonly restartPolicy?: string;
  /** What its placement needs besides the tolerations that every manifest has. */
  readonly spec?: Partial<PodObject['spec']>;
  /** Of each container. */
  readonly memory?: string;
  readonly status?: NonNullable<PodObject['status']>;
}

/** Padded where it is used: of two UIDs the later one is the greater text, however many files have run before. */
let nextUid = 1;

/** A Pod as the API server sends it. */
export function makePodObject(options: PodOptions = {}): PodObject {
  const { name = 'p1', modules = ['biz1:1.0.0'], createdAt = '2026-01-01T00:00:00Z' } = options;
  return {
    metadata: {
      name,
      namespace: options.namespace ?? 'ns',
      uid: options.uid ?? `uid-${String(nextUid++).padStart(8, '0')}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: createdAt,
      labels: { 'virtual-kubelet.koupleless.io/component': 'module' },
      ...(options.strategy === undefined ? {} : { annotations: { [ANNOTATION.installStrategy]: options.strategy } }),
      ...(options.deleting ? { deletionTimestamp: '2026-01-01T01:00:00Z' } : {}),
      ...(options.graceSeconds === undefined ? {} : { deletionGracePeriodSeconds: options.graceSeconds }),
    },
    spec: {
      nodeName: options.node ?? 'vnode.b1',
      restartPolicy: options.restartPolicy ?? 'Always',
      tolerations: [
        { key: TAINT.virtualNode, value: 'True', effect: 'NoExecute' },
        { key: TAINT.env, value: 'dev', effect: 'NoExecute' },
      ],
      containers: modules.map((key) => ({
        name: idOf(key).name,
        image: options.url ?? urlOf(key),
        ...(options.args ? { args: options.args } : {}),
        env: [{ name: 'BIZ_VERSION', value: idOf(key).version }, ...(options.env ?? [])],
        ...(options.sleepSeconds === undefined
          ? {}
          : { lifecycle: { preStop: { sleep: { seconds: options.sleepSeconds } } } }),
        ...(options.memory === undefined ? {} : { resources: { requests: { memory: options.memory } } }),
      })),
      ...options.spec,
    },
    status: options.status ?? { phase: 'Pending' },
  };
}

/** The same as the informer keeps it. */
export function makePod(options: PodOptions = {}): VPod {
  return projectPod(makePodObject(options) as KubeObject);
}

export function runningStatus(key: string, more: Partial<ContainerStatus> = {}): ContainerStatus {
  const image = urlOf(key);
  return {
    name: idOf(key).name,
    image,
    imageID: image,
    containerID: `koupleless://b1/${key}`,
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: '2026-01-01T00:00:10Z' } },
    ...more,
  };
}

/** Of the Node `vnode.b1`. */
export function makeCachedLease(more: Partial<CachedLease> = {}): CachedLease {
  return {
    kind: 'Node',
    namespace: 'kube-node-lease',
    name: 'vnode.b1',
    uid: 'l1',
    resourceVersion: '7',
    holder: 'me',
    transitions: 0,
    leaseDurationSeconds: 0,
    renewTime: '',
    ownerUid: undefined,
    hasManagedFields: false,
    isLabelled: true,
    member: undefined,
    ...more,
  };
}

export function makeBase(identity: string, more: Partial<BaseInfo> = {}): BaseInfo {
  return {
    identity,
    name: 'base',
    version: '1.0.0',
    clusterName: 'default',
    ip: '198.51.100.1',
    hostName: `host-${identity}`,
    port: 0,
    ...more,
  };
}

export function makeHealth(more: Partial<BaseHealth> = {}): BaseHealth {
  return {
    metaspaceUsedBytes: 60 * MIB,
    metaspaceCommittedBytes: 64 * MIB,
    metaspaceMaxBytes: 256 * MIB,
    runTimeSeconds: 100,
    javaVersion: '17.0.15',
    ...more,
  };
}
