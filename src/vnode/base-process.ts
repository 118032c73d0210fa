import type { BaseHealth } from '../tunnel/base.ts';
import type { BasePod } from './node-object.ts';
import { isOtherProcess, type RunTime } from './restart-signs.ts';

/** What a base reports of its process, and the Pod that it runs in. The VNodeController changes it with each answer. */
export class BaseProcess {
  #health: BaseHealth | undefined;
  #masterName: string | undefined;
  /** Age of the JVM at its last health answer: a process that does not continue from there is another one. */
  #runTime: RunTime | undefined;
  #basePod: BasePod | undefined;

  get health(): BaseHealth | undefined {
    return this.#health;
  }

  /** The name that the base has in its own list; undefined before this process of it reported its health. */
  get masterName(): string | undefined {
    return this.#masterName;
  }

  /** Undefined before it was looked for. */
  get basePod(): BasePod | undefined {
    return this.#basePod;
  }

  /** `name`: the name of the base in its heartbeats. */
  reportHealth(health: BaseHealth, name: string): void {
    // A base that could not report its figures has not lost its memory.
    if (health.metaspaceUsedBytes !== undefined || this.#health === undefined) this.#health = health;
    this.#masterName = health.masterName ?? name;
  }

  /** Takes the age of the JVM from a health answer. Returns whether another process has answered before. */
  reportAge(seconds: number | undefined, now: number, askedAt: number | undefined): boolean {
    if (seconds === undefined) return false;
    const before = this.#runTime;
    this.#runTime = { seconds, heardAt: now };
    return before !== undefined && isOtherProcess(before, seconds, askedAt);
  }

  /** The next process may have any age. */
  end(): void {
    this.#runTime = undefined;
  }

  /** Another process has the identity, and may have another name. */
  replace(): void {
    this.end();
    this.#masterName = undefined;
  }

  /** Undefined: the Pod is looked for again. Called by BasePods. */
  foundIn(pod: BasePod | undefined): void {
    this.#basePod = pod;
  }
}
