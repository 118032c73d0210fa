import { JsonScan, type Members, membersOf, type Take } from './json-scan.ts';

/** Pods with the same value of this label belong together. */
export const GROUP_LABEL = 'bench';

/** What the observer counts of a line of a watch. An object is gone with its last line. */
export interface NodeLine {
  readonly name: string;
  readonly isGone: boolean;
  /** Ready=True, and without a taint of Kubernetes' own: the scheduler may use it. */
  readonly isUsable: boolean;
}

export interface PodLine {
  readonly uid: string;
  readonly isGone: boolean;
  readonly group: string | undefined;
  readonly isBound: boolean;
  readonly isReady: boolean;
  /** Of its containers the highest number. */
  readonly restarts: number;
}

export interface LeaseLine {
  readonly name: string;
  readonly isGone: boolean;
  /** Wall clock, ms. */
  readonly renewedAt: number | undefined;
}

/** undefined: it is of no object. A failure that the API server writes into a watch is thrown. */
export function nodeLineOf(line: Buffer): NodeLine | undefined {
  const found: NodeFound = { type: '', name: '', ready: undefined, isTainted: false };
  new JsonScan(line).object(NODE_EVENT, found);
  if (!isOfObject(found.type, line)) return undefined;
  return { name: found.name, isGone: found.type === 'DELETED', isUsable: found.ready === true && !found.isTainted };
}

export function podLineOf(line: Buffer): PodLine | undefined {
  const found: PodFound = { type: '', uid: '', group: undefined, nodeName: '', ready: undefined, restarts: 0 };
  new JsonScan(line).object(POD_EVENT, found);
  if (!isOfObject(found.type, line)) return undefined;
  const { uid, group, restarts } = found;
  const isGone = found.type === 'DELETED';
  return { uid, isGone, group, isBound: found.nodeName !== '', isReady: found.ready === true, restarts };
}

export function leaseLineOf(line: Buffer): LeaseLine | undefined {
  const found: LeaseFound = { type: '', name: '', renewTime: undefined };
  new JsonScan(line).object(LEASE_EVENT, found);
  if (!isOfObject(found.type, line)) return undefined;
  const { name, renewTime } = found;
  const renewedAt = renewTime === undefined ? undefined : Date.parse(renewTime);
  return { name, isGone: found.type === 'DELETED', renewedAt };
}

/** Whether a line is about an object. A failure that the API server writes into a watch is thrown. */
export function isOfObject(type: string, line: Buffer): boolean {
  if (type === 'ERROR') throw new Error(`a watch failed: ${line.toString()}`);
  return type !== 'BOOKMARK';
}

export interface EventFound {
  type: string;
}

export interface ConditionsFound {
  /** Of the first condition Ready, whether it is True; undefined: there is none. */
  ready: boolean | undefined;
}

interface NodeFound extends EventFound, ConditionsFound {
  name: string;
  isTainted: boolean;
}

interface PodFound extends EventFound, ConditionsFound {
  uid: string;
  group: string | undefined;
  nodeName: string;
  restarts: number;
}

interface LeaseFound extends EventFound {
  name: string;
  renewTime: string | undefined;
}

/** The members of `{"type": …, "object": {…}}`. */
export function eventOf<T extends EventFound>(members: Readonly<Record<string, Take<T>>>): Members<T> {
  const inner = membersOf(members);
  return membersOf<T>({
    type: (scan, found) => {
      found.type = scan.text() ?? '';
    },
    object: (scan, found) => scan.object(inner, found),
  });
}

export function inside<T>(members: Readonly<Record<string, Take<T>>>): Take<T> {
  const inner = membersOf(members);
  return (scan, found) => scan.object(inner, found);
}

interface ConditionFound {
  type: string | undefined;
  status: string | undefined;
}

const CONDITION = membersOf<ConditionFound>({
  type: (scan, found) => {
    found.type = scan.text();
  },
  status: (scan, found) => {
    found.status = scan.text();
  },
});

export function takeConditions<T extends ConditionsFound>(scan: JsonScan, found: T): void {
  scan.array(() => {
    const condition: ConditionFound = { type: undefined, status: undefined };
    scan.object(CONDITION, condition);
    if (condition.type === 'Ready') found.ready ??= condition.status === 'True';
  });
}

const TAINT = membersOf<NodeFound>({
  key: (scan, found) => {
    if (scan.text()?.startsWith('node.kubernetes.io/')) found.isTainted = true;
  },
});

const CONTAINER_STATUS = membersOf<PodFound>({
  restartCount: (scan, found) => {
    found.restarts = Math.max(found.restarts, scan.number() ?? 0);
  },
});

function takeName(scan: JsonScan, found: { name: string }): void {
  found.name = scan.text() ?? '';
}

const NODE_EVENT = eventOf<NodeFound>({
  metadata: inside({ name: takeName }),
  spec: inside({ taints: (scan, found) => scan.array(() => scan.object(TAINT, found)) }),
  status: inside({ conditions: takeConditions }),
});

const POD_EVENT = eventOf<PodFound>({
  metadata: inside({
    uid: (scan, found) => {
      found.uid = scan.text() ?? '';
    },
    labels: inside({
      [GROUP_LABEL]: (scan, found) => {
        found.group = scan.text();
      },
    }),
  }),
  spec: inside({
    nodeName: (scan, found) => {
      found.nodeName = scan.text() ?? '';
    },
  }),
  status: inside({
    conditions: takeConditions,
    containerStatuses: (scan, found) => scan.array(() => scan.object(CONTAINER_STATUS, found)),
  }),
});

const LEASE_EVENT = eventOf<LeaseFound>({
  metadata: inside({ name: takeName }),
  spec: inside({
    renewTime: (scan, found) => {
      found.renewTime = scan.text();
    },
  }),
});
