import type { Fleet } from '../../../samples/base-simulator/fleet.ts';
import type { ApiClient } from '../../../samples/control-plane/api-client.ts';
import { eventually } from '../eventually.ts';
import type { FeedClient } from '../feed-client.ts';
import type { BalancerProcess } from './balancer-process.ts';
import { Caller, type FailedCall } from './caller.ts';
import { EndpointPicker } from './endpoint-picker.ts';

export const CALLS_PER_SECOND = 500;
/** Calls after the last step of a phase: what goes wrong late is seen too. */
const LAST_CALLS = 5 * CALLS_PER_SECOND;
const SHOWN_FAILURES = 5;

export const PATHS = ['HAProxy', 'EndpointSlices'] as const;
export type Path = (typeof PATHS)[number];

/** Why a failed call could not be avoided; undefined: it could. */
export type Excuse = (failure: FailedCall) => string | undefined;

export interface Allowance {
  readonly excuse: Excuse;
  /** How many failed calls it may excuse. */
  readonly atMost: number;
}

/** HAProxy as the sample balancer configures it. */
const CAPTION =
  'HAProxy tries a call again, on another base, only while it cannot connect (`retries 2`, `option redispatch 1`, and no `retry-on`): an answer of a base, and a connection that breaks, are never tried again. The callers send a call again only when a kept connection was closed, and to the same address.';

export interface PhaseResult {
  readonly phase: string;
  readonly path: Path;
  readonly seconds: number;
  readonly calls: number;
  readonly failures: readonly FailedCall[];
  /** Shares of all answers, in per cent, by version. */
  readonly shares: Readonly<Record<string, number>>;
}

export interface PhaseOptions {
  readonly name: string;
  readonly service: string;
  readonly admin: ApiClient;
  readonly feed: FeedClient;
  /** What the bases are commanded. */
  readonly commands: Fleet['history'];
  readonly balancer: BalancerProcess;
  /** Where HAProxy listens for the Service. */
  readonly port: number;
  /** Of the servers of the bases. */
  readonly basePort: number;
  readonly localAddressOf: (address: string) => string;
}

/** Calls of one Service through HAProxy and through its EndpointSlices, side by side, from `begin` to `end`. */
export class Phase {
  /** What happened when, with the time. */
  readonly notes: string[] = [];
  readonly callers: Readonly<Record<Path, Caller>>;
  readonly picker: EndpointPicker;
  /** The fewest backends that the feed has had. */
  fewestListed = Number.POSITIVE_INFINITY;
  readonly #options: PhaseOptions;
  #endWatch = () => {};
  #endCommands = () => {};
  readonly #startedAt = Date.now();

  private constructor(options: PhaseOptions, picker: EndpointPicker) {
    this.#options = options;
    this.picker = picker;
    const { service, port, basePort, localAddressOf } = options;
    const [path, host] = [`/${service}`, hostOf(service)];
    this.callers = {
      HAProxy: new Caller(CALLS_PER_SECOND, () => ({ address: '127.0.0.1', port, path, host })),
      EndpointSlices: new Caller(CALLS_PER_SECOND, () => {
        const picked = picker.pick();
        return picked === undefined ? undefined : { address: localAddressOf(picked), port: basePort, path, host };
      }),
    };
  }

  static async begin(options: PhaseOptions): Promise<Phase> {
    let phase: Phase | undefined;
    const onChange = (ready: readonly string[]): void => phase?.note(`EndpointSlices: ${shown(ready)}`);
    const picker = await EndpointPicker.start(options.admin, options.service, onChange);
    // What there is comes as the first events of the watch.
    await eventually(() => {
      if (picker.ready.length === 0) throw new Error('no endpoint is ready');
    });
    phase = new Phase(options, picker);
    await phase.#watchFeed();
    phase.#endCommands = options.commands.subscribe(({ base, command, bizVersion, outcome }) => {
      if (bizVersion !== undefined) phase.note(`${base}: ${command} ${bizVersion} ${outcome}`);
    });
    return phase;
  }

  note(text: string): void {
    this.notes.push(`${new Date().toISOString()} ${text}`);
  }

  /** Until so many further calls were made on each path. */
  async further(calls: number): Promise<void> {
    const wanted = Object.values(this.callers).map((caller) => [caller, caller.calls + calls] as const);
    await eventually(() => {
      for (const [caller, count] of wanted)
        if (caller.calls < count) throw new Error(`${caller.calls} of ${count} calls`);
    });
  }

  async end(): Promise<PhaseResult[]> {
    await this.further(LAST_CALLS);
    await Promise.all(Object.values(this.callers).map((caller) => caller.stop()));
    this.picker.stop();
    this.#endWatch();
    this.#endCommands();
    const seconds = (Date.now() - this.#startedAt) / 1000;
    return PATHS.map((path) => {
      const { calls, failures, versions } = this.callers[path];
      const answers = [...versions.values()].reduce((sum, count) => sum + count, 0);
      const shares = Object.fromEntries([...versions].map(([version, count]) => [version, (100 * count) / answers]));
      return { phase: this.#options.name, path, seconds, calls, failures, shares };
    });
  }

  async #watchFeed(): Promise<void> {
    this.#endWatch = await this.#options.feed.watch('?group=external', ({ object }) => {
      if (object?.serviceName !== this.#options.service) return;
      const listed = object.ports.flatMap(({ backends }) => backends.map(({ targetIP }) => targetIP));
      this.fewestListed = Math.min(this.fewestListed, listed.length);
      this.note(`feed: ${shown(listed)}`);
    });
  }

  /** Notes and what the balancer printed in this phase, in the order of time. */
  timeline(): string[] {
    const from = new Date(this.#startedAt).toISOString();
    return [...this.notes, ...this.#options.balancer.lines.filter((line) => line >= from)].sort();
  }
}

function shown(addresses: readonly string[]): string {
  return `${addresses.length} ${addresses.toSorted().join(' ')}`;
}

/** The host name under which HAProxy serves a Service. */
export function hostOf(service: string): string {
  return `${service}.example.com`;
}

/** Failed calls by what excuses them; '' where nothing does. */
export function byExcuse(failures: readonly FailedCall[], excuse: Excuse): Map<string, FailedCall[]> {
  return Map.groupBy(failures, (failure) => excuse(failure) ?? '');
}

export function tableOf(results: readonly (PhaseResult & Allowance)[]): string {
  const rows = results.map(({ phase, path, seconds, calls, failures, excuse, atMost }) => {
    const reasons = [...byExcuse(failures, excuse)].filter(([reason]) => reason !== '');
    const excused = reasons.map(([reason, { length }]) => `${length} ${reason}`).join('; ');
    return `| ${phase} | ${path} | ${seconds.toFixed(0)} | ${calls} | ${failures.length} | ${Math.floor(atMost)} | ${excused} |`;
  });
  return [
    CAPTION,
    '',
    '| Phase | Path | Seconds | Calls | Failed | Allowed | Failed because |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

/** The first failed calls that nothing excuses, or the first of all. */
export function firstFailures({
  failures,
  excuse,
}: Pick<PhaseResult, 'failures'> & Pick<Allowance, 'excuse'>): string[] {
  const avoidable = failures.filter((failure) => excuse(failure) === undefined);
  return (avoidable.length > 0 ? avoidable : failures)
    .slice(0, SHOWN_FAILURES)
    .map(
      ({ startedAt, endedAt, address = '-', connectedAt = startedAt, cause }) =>
        `${new Date(startedAt).toISOString()} +${endedAt - startedAt} ms ${address}, connected ${startedAt - connectedAt} ms before: ${cause}`,
    );
}
