import { memberLeaseNameOf } from '../../../src/lease/member.ts';
import { MembershipController } from '../../../src/lease/membership-controller.ts';
import { type Logger, silentLogger } from '../../../src/logger.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { Host } from './host.ts';
import { LeaseServer } from './lease-server.ts';
import { Link, ServerMachine } from './link.ts';
import { NAMESPACE } from './replica.ts';
import { ENV, SimWatch } from './sim-watch.ts';
import { Dice, Timeline } from './timeline.ts';

const TIMEOUT_MS = 2_000;

/** The API server and the time that several members share. */
export class MemberWorld {
  readonly timeline = new Timeline();
  readonly dice = new Dice(1);
  readonly server = new LeaseServer(this.dice);
  readonly machine = new ServerMachine();
  readonly #members: MemberProcess[] = [];
  readonly logger: Logger;
  #nonces = 0;

  /** `logger`: of all members. Default: one that says nothing. */
  constructor(logger: Logger = silentLogger) {
    this.logger = logger;
    this.server.onEvent = (event) => {
      for (const { watch } of this.#members) watch.push(event);
    };
  }

  /** A process with that CLIENT_ID; it runs from now on. `address`: undefined = nowhere. */
  start(
    clientId: string,
    { address }: { address: string | undefined } = { address: `${clientId}:7777` },
  ): MemberProcess {
    const process = new MemberProcess(this, { clientId, nonce: `${clientId}#${this.#nonces++}`, address });
    this.#members.push(process);
    process.start();
    return process;
  }

  pass(ms: number): Promise<void> {
    return this.timeline.pass(ms);
  }

  keyOf(clientId: string): string {
    return `${NAMESPACE}/${memberLeaseNameOf(ENV, clientId)}`;
  }

  annotationOf(clientId: string, name: string): string | undefined {
    return this.server.leases.get(this.keyOf(clientId))?.metadata.annotations?.[`member.koupleless.io/${name}`];
  }
}

interface MemberNames {
  readonly clientId: string;
  readonly nonce: string;
  readonly address: string | undefined;
}

/** One real MembershipController, and what it says. */
export class MemberProcess {
  readonly host: Host;
  readonly link: Link;
  readonly watch: SimWatch;
  readonly membership: MembershipController;
  readonly metrics = createMetrics();
  readonly stopping = new AbortController();
  /** What it told its listeners, and how it ended. */
  readonly said: string[] = [];
  readonly requests: string[] = [];

  constructor(world: MemberWorld, { clientId, nonce, address }: MemberNames) {
    const { timeline, dice, server, machine, logger } = world;
    this.host = new Host({ timeline, dice, rate: 1 });
    const onRequest = (request: string): void => void this.requests.push(request);
    this.link = new Link({ host: this.host, server, machine, dice, maxLatencyMs: 2, onRequest });
    const ownName = memberLeaseNameOf(ENV, clientId);
    this.watch = new SimWatch({ host: this.host, link: this.link, server, machine, dice, ownName });
    this.membership = new MembershipController({
      api: this.link.clientOf(NAMESPACE, { timeoutMs: TIMEOUT_MS, isOnce: true }),
      informer: this.watch,
      env: ENV,
      clientId,
      nonce,
      address,
      onRolledBack: () => this.watch.wasRolledBack(),
      clock: this.host,
      logger,
      metrics: this.metrics,
    });
    void this.membership.announce({ tunnels: ['mqtt', 'http'] });
    this.membership.addListener({
      onProven: () => this.said.includes('proven') || this.said.push('proven'),
      onFenced: () => void this.said.push('fenced'),
    });
  }

  start(): void {
    this.watch.start();
    void this.#run();
  }

  async #run(): Promise<void> {
    await this.watch.whenSynced();
    try {
      await this.membership.run(this.stopping.signal);
      this.said.push('ended');
    } catch (error) {
      this.said.push(`failed ${error instanceof Error && 'code' in error ? String(error.code) : ''}`);
    }
  }

  /** The ids of those that it takes for live members. */
  get members(): string[] {
    return this.membership.members().map(({ id }) => id);
  }
}
