import { JsonScan, type Take } from '../../scale/observer/json-scan.ts';
import {
  type ConditionsFound,
  type EventFound,
  eventOf,
  inside,
  isOfObject,
  takeConditions,
} from '../../scale/observer/watch-line.ts';
import type { ObjectSeen } from './change-book.ts';

/** The part of a line of a watch of Modules or of their workloads that the observer and the floor read. */
export interface ObjectLine extends ObjectSeen {
  readonly isGone: boolean;
  /** Whether the condition Ready is True. */
  readonly isReady: boolean;
}

interface Found extends EventFound, ConditionsFound {
  namespace: string;
  name: string;
  number: number | undefined;
}

/** The Module of a line. Undefined: the line is of no object, or of one without the field that changes. */
export function moduleLineOf(line: Buffer): ObjectLine | undefined {
  return lineOf(MODULE_EVENT, line);
}

/** The workload of a line, in the same way. */
export function workloadLineOf(line: Buffer): ObjectLine | undefined {
  return lineOf(WORKLOAD_EVENT, line);
}

function lineOf(event: ReturnType<typeof eventOf<Found>>, line: Buffer): ObjectLine | undefined {
  const found: Found = { type: '', namespace: '', name: '', number: undefined, ready: undefined };
  new JsonScan(line).object(event, found);
  if (!isOfObject(found.type, line) || found.number === undefined) return undefined;
  const { namespace, name, number, ready, type } = found;
  return { key: `${namespace}/${name}`, number, isGone: type === 'DELETED', isReady: ready === true };
}

const metadata = inside<Found>({
  name: (scan, found) => {
    found.name = scan.text() ?? '';
  },
  namespace: (scan, found) => {
    found.namespace = scan.text() ?? '';
  },
});

const strategy = inside<Found>({
  rollingUpdate: inside({
    maxSurge: (scan, found) => {
      found.number = scan.number();
    },
  }),
});

const status: Take<Found> = inside({ conditions: takeConditions });

const MODULE_EVENT = eventOf<Found>({
  metadata,
  spec: inside({ deploy: inside({ strategy }) }),
  status,
});

const WORKLOAD_EVENT = eventOf<Found>({ metadata, spec: inside({ strategy }), status });
