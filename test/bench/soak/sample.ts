/** What is known of one replica at one moment. */
export interface ReplicaSample {
  readonly replica: string;
  /** Bytes that live after garbage collections, but for what V8 has compiled. */
  readonly heap: number;
  readonly code: number;
  readonly external: number;
  readonly resident: number;
  readonly sockets: number;
  /** Of the event loop since the sample before, ms. */
  readonly loopDelayP99: number;
  /** Pods that this process has deleted in the end: they came and went under its lead. */
  readonly ended: number;
  /** By series, as in /metrics. */
  readonly gauges: Readonly<Record<string, number>>;
}

/** Written as one line of JSON. */
export interface Sample {
  /** Since the churn began; 0 before. */
  readonly seconds: number;
  /** `rest`: before all and after all; `calm`: after the churn, between bursts of Pods. In both nothing happens. */
  readonly phase: 'rest' | 'churn' | 'calm';
  readonly world: WorldSize;
  /** Those that are up. */
  readonly replicas: readonly ReplicaSample[];
}

/** As seen from outside. */
export interface WorldSize {
  /** Alive. */
  readonly bases: number;
  readonly nodes: number;
  readonly pods: number;
  /** Pods that have come and gone, of all kinds. */
  readonly churned: number;
  readonly rollouts: number;
}
