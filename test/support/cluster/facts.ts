/** What was seen of a cluster of replicas, each fact with the wall clock of this machine in ms. */

/** A version of a Lease. */
export interface LeaseFact {
  readonly base: string;
  readonly holder: string;
  /** As written by whoever wrote it, with the clock of the same machine; 0 where there is none. */
  readonly acquiredAt: number;
  readonly renewedAt: number;
  readonly transitions: number;
  readonly resourceVersion: string;
  /** Arrival. */
  readonly at: number;
  readonly isGone: boolean;
}

/** A replica renewed its membership then: it may lead for a few seconds. */
export interface RenewalFact {
  readonly replica: string;
  readonly at: number;
}

/** A command, where it came in. */
export interface CommandFact {
  readonly replica: string;
  readonly base: string;
  readonly command: string;
  /** `name:version`; '' for questions. */
  readonly module: string;
  /** When it was noted. */
  readonly at: number;
}

/** What a base made of a command. */
export interface OperationFact {
  readonly base: string;
  readonly command: string;
  readonly module: string;
  /** Of the module when the command came; '' when the base did not have it. */
  readonly stateAtReceipt: string;
  readonly outcome: string;
  readonly at: number;
  readonly finishedAt: number | undefined;
}

/** A version of a Pod. */
export interface PodFact {
  readonly name: string;
  readonly uid: string;
  readonly nodeName: string;
  /** `name:version` of each container. */
  readonly modules: readonly string[];
  /** Deletion was asked for then at the latest; undefined: it was not. */
  readonly deletedAt: number | undefined;
  /** Succeeded or Failed: it wants nothing any more. */
  readonly isOver: boolean;
  readonly ready: string;
  readonly at: number;
  readonly isGone: boolean;
}

/** A version of a Node. */
export interface NodeFact {
  readonly name: string;
  readonly uid: string;
  readonly ready: string;
  readonly reason: string;
  readonly at: number;
  readonly isGone: boolean;
}

/** A write to `nodes/status` or `pods/status` that the API server has done. */
export interface StatusWriteFact {
  readonly replica: string;
  readonly resource: 'nodes' | 'pods';
  readonly name: string;
  /** When the API server received it. */
  readonly at: number;
}

export interface RestartFact {
  readonly base: string;
  readonly at: number;
}

/** The test itself stood still, and with it the wires, the broker and the bases, which are in its process. */
export interface PauseFact {
  readonly from: number;
  readonly to: number;
}

/** What the test did. */
export interface NoteFact {
  readonly text: string;
  readonly at: number;
}

export interface ClusterFacts {
  readonly leases: readonly LeaseFact[];
  readonly renewals: readonly RenewalFact[];
  readonly commands: readonly CommandFact[];
  readonly operations: readonly OperationFact[];
  readonly pods: readonly PodFact[];
  readonly nodes: readonly NodeFact[];
  readonly writes: readonly StatusWriteFact[];
  readonly restarts: readonly RestartFact[];
  /** In the order of time. */
  readonly pauses: readonly PauseFact[];
  readonly notes: readonly NoteFact[];
}

export const NO_FACTS: ClusterFacts = {
  leases: [],
  renewals: [],
  commands: [],
  operations: [],
  pods: [],
  nodes: [],
  writes: [],
  restarts: [],
  pauses: [],
  notes: [],
};
