import { Leader } from '../../../../src/kube/leader.ts';
import { createMetrics } from '../../../../src/metrics.ts';
import { Host } from '../../../support/lease-simulation/host.ts';
import { LeaseServer } from '../../../support/lease-simulation/lease-server.ts';
import { Link, ServerMachine } from '../../../support/lease-simulation/link.ts';
import { Dice, Timeline } from '../../../support/lease-simulation/timeline.ts';
import { capturedLogger } from './rig.ts';

export const NAMESPACE = 'koupleless-system';
export const NAME = 'rollout';
export const KEY = `${NAMESPACE}/${NAME}`;

/** The processes that want to lead, and the API server between them. */
export class LeaderWorld {
  readonly timeline = new Timeline();
  readonly dice: Dice;
  readonly server: LeaseServer;
  readonly machine = new ServerMachine();
  readonly candidates: Candidate[] = [];

  constructor(seed = 1) {
    this.dice = new Dice(seed);
    this.server = new LeaseServer(this.dice);
    this.timeline.onStep = () => {
      const leading = this.candidates.filter(({ isLeading }) => isLeading).map(({ identity }) => identity);
      if (leading.length > 1) throw new Error(`${leading.join(' and ')} lead at ${this.timeline.now} ms`);
    };
  }

  start(identity: string): Candidate {
    const candidate = new Candidate(this, identity);
    this.candidates.push(candidate);
    return candidate;
  }

  get leading(): string[] {
    return this.candidates.filter(({ isLeading }) => isLeading).map(({ identity }) => identity);
  }

  pass(ms: number): Promise<void> {
    return this.timeline.pass(ms);
  }
}

export class Candidate {
  readonly identity: string;
  readonly host: Host;
  readonly link: Link;
  readonly said: string[] = [];
  readonly requests: string[] = [];
  readonly metrics = createMetrics();
  readonly #log = capturedLogger();
  /** Called before each request. */
  onRequest: (verb: string) => void = () => {};
  readonly stopping = new AbortController();
  readonly ended: Promise<void>;
  readonly #leader: Leader;

  constructor({ timeline, dice, server, machine }: LeaderWorld, identity: string) {
    this.identity = identity;
    this.host = new Host({ timeline, dice, rate: 1 });
    const onRequest = (request: string): void => {
      const [verb = ''] = request.split(' ');
      this.requests.push(verb);
      this.onRequest(verb);
    };
    this.link = new Link({ host: this.host, server, machine, dice, maxLatencyMs: 50, onRequest });
    this.#leader = new Leader({
      api: this.link.clientOf(NAMESPACE, { timeoutMs: 3_000, isOnce: true }),
      name: NAME,
      namespace: NAMESPACE,
      identity,
      onRolledBack: () => void this.said.push('rolled back'),
      clock: this.host,
      logger: this.#log.logger,
      metrics: this.metrics,
    });
    this.#leader.addListener({
      onStarted: () => void this.said.push('started'),
      onStopped: () => void this.said.push('stopped'),
    });
    this.ended = this.#leader.run(this.stopping.signal);
  }

  /** What it has warned of. */
  get warnings(): string[] {
    return this.#log.lines.filter(({ level }) => level === 40).map(({ msg }) => msg);
  }

  /** As its metric shows it. */
  async shownAsLeading(): Promise<number | undefined> {
    return (await this.metrics.leading.get()).values[0]?.value;
  }

  /** A process that stands still does nothing, whatever it believes. */
  get isLeading(): boolean {
    return !this.host.isDead && !this.host.isStopped && this.#leader.isLeading();
  }
}
