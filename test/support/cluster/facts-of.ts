import type { CommandRecord } from '../../../samples/base-simulator/history.ts';
import type { RecordedPublish } from '../../../samples/broker/recorder.ts';
import type { KubeObject } from '../../../samples/control-plane/api-client.ts';
import { identityOf } from '../../../src/labels.ts';
import type { CommandFact, LeaseFact, NodeFact, OperationFact, PodFact } from './facts.ts';
import type { Seen } from './object-recorder.ts';

/** What is noted of what was seen. */

/** undefined: not of a Node of ours. */
export function leaseFactOf({ object: { metadata, spec }, at, isGone }: Seen): LeaseFact | undefined {
  const base = identityOf(metadata.name);
  if (base === undefined) return undefined;
  return {
    base,
    holder: spec?.holderIdentity ?? '',
    acquiredAt: millisecondsOf(spec?.acquireTime),
    renewedAt: millisecondsOf(spec?.renewTime),
    transitions: spec?.leaseTransitions ?? 0,
    resourceVersion: metadata.resourceVersion,
    at,
    isGone,
  };
}

/** `deletionTimestamp` is the end of the grace period, in whole seconds. */
export function podFactOf({ object: { metadata, spec, status }, at, isGone }: Seen): PodFact {
  const asked = Date.parse(metadata.deletionTimestamp) - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return {
    name: metadata.name,
    uid: metadata.uid,
    nodeName: spec.nodeName ?? '',
    modules: spec.containers.map(moduleOfContainer),
    deletedAt: metadata.deletionTimestamp === undefined ? undefined : Math.min(at, asked),
    isOver: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    ready: readyOf(status).status,
    at,
    isGone,
  };
}

export function nodeFactOf({ object: { metadata, status }, at, isGone }: Seen): NodeFact {
  const { status: ready, reason } = readyOf(status);
  return { name: metadata.name, uid: metadata.uid, ready, reason, at, isGone };
}

/** undefined: no command of a replica. */
export function commandFactOf({ clientId = '', topic, payload }: RecordedPublish): CommandFact | undefined {
  const [, replica] = /@@@(controller-[^@]+)/.exec(clientId) ?? [];
  const [, base, command] = /^koupleless_[^/]+\/([^/]+)\/([^/]+)$/.exec(topic) ?? [];
  if (replica === undefined || base === undefined || command === undefined) return undefined;
  return commandOf(replica, { base, command, ...bizOf(payload) });
}

/** It was sent at this moment. */
export function commandOf(
  replica: string,
  { base, command, ...biz }: Pick<CommandRecord, 'base' | 'command' | 'bizName' | 'bizVersion'>,
): CommandFact {
  return { replica, base, command, module: moduleOf(biz), at: Date.now() };
}

export function operationFactOf(record: CommandRecord): OperationFact {
  const { base, command, outcome, receivedAt, finishedAt, stateAtReceipt = '' } = record;
  return { base, command, module: moduleOf(record), stateAtReceipt, outcome, at: receivedAt, finishedAt };
}

export function millisecondsOf(time: string | undefined): number {
  return time === undefined ? 0 : Date.parse(time);
}

function moduleOfContainer({ name, env = [] }: KubeObject): string {
  return `${name}:${env.find((entry: { name: string }) => entry.name === 'BIZ_VERSION')?.value}`;
}

function moduleOf({ bizName, bizVersion }: { bizName?: string; bizVersion?: string }): string {
  return bizName === undefined ? '' : `${bizName}:${bizVersion}`;
}

function bizOf(payload: string | undefined): { bizName?: string; bizVersion?: string } {
  try {
    const { bizName, bizVersion } = JSON.parse(payload ?? '{}');
    return { ...(bizName && { bizName }), ...(bizVersion && { bizVersion }) };
  } catch {
    return {};
  }
}

function readyOf(status: KubeObject): { status: string; reason: string } {
  const ready = status?.conditions?.find(({ type }: { type: string }) => type === 'Ready');
  return { status: ready?.status ?? 'None', reason: ready?.reason ?? '' };
}
