import type { Pool } from 'undici';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL } from '../../../../src/labels.ts';
import { poolOf, watchLines } from '../http-pool.ts';
import type { ApiOptions } from './api-writer.ts';
import { eventOf, eventOfListed, type PodEvent } from './pod-line.ts';

const SELECTORS = new URLSearchParams({
  labelSelector: `${COMPONENT_LABEL}=${COMPONENT.module}`,
  fieldSelector: 'spec.nodeName!=',
});
const PATH = `/api/v1/pods?${SELECTORS}`;

interface PodList {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly PodObject[];
}

export interface PodHandler {
  readonly onEvent: (event: PodEvent) => void;
  /** What a list was made of, when all of it was told. */
  readonly onListed: (uids: ReadonlySet<string>) => void;
}

/** All module Pods that are bound, by one list and one watch. Where the watch ends, both once more. */
export class PodWatch {
  /** Of its own, or the watch would take a connection from the writers. */
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #handler: PodHandler;

  private constructor(options: ApiOptions, handler: PodHandler) {
    this.#pool = poolOf(options.server, { ca: options.certificateAuthority }, 1);
    this.#headers = { authorization: `Bearer ${options.token}`, accept: 'application/json', 'user-agent': 'floor' };
    this.#handler = handler;
  }

  /** Resolves when the API server has taken the watch. */
  static start(options: ApiOptions, handler: PodHandler): Promise<void> {
    const watch = new PodWatch(options, handler);
    return new Promise((resolve, reject) => {
      // A failure later on ends the process: without a watch there is nothing to measure.
      watch.#run(resolve).catch((error: unknown) => {
        reject(error);
        throw error;
      });
    });
  }

  async #run(onOpen: () => void): Promise<never> {
    for (;;) await this.#watch(await this.#list(), onOpen);
  }

  /** The version that it is of. */
  async #list(): Promise<string> {
    const { statusCode, body } = await this.#pool.request({ method: 'GET', path: PATH, headers: this.#headers });
    if (statusCode !== 200) throw new Error(`list of Pods: ${statusCode} ${await body.text()}`);
    const { metadata, items } = (await body.json()) as PodList;
    const events = items.map(eventOfListed);
    for (const event of events) this.#handler.onEvent(event);
    this.#handler.onListed(new Set(events.map(({ uid }) => uid)));
    return metadata.resourceVersion;
  }

  /** Resolves when the API server has ended it. */
  #watch(resourceVersion: string, onOpen: () => void): Promise<void> {
    const onLine = (line: Buffer): void => {
      const event = eventOf(line);
      // An ERROR is the last line of a watch.
      if (event !== undefined) this.#handler.onEvent(event);
    };
    return watchLines(this.#pool, { path: PATH, resourceVersion, headers: this.#headers, onOpen, onLine });
  }
}
