import type { Pool } from 'undici';
import { LineSplitter } from '../../../../src/kube/line-splitter.ts';
import type { PodObject } from '../../../../src/kube/objects.ts';
import { COMPONENT, COMPONENT_LABEL } from '../../../../src/labels.ts';
import { type ApiOptions, poolOf } from './api-writer.ts';
import { eventOf, eventOfListed, type PodEvent } from './pod-line.ts';

const SELECTORS = new URLSearchParams({
  labelSelector: `${COMPONENT_LABEL}=${COMPONENT.module}`,
  fieldSelector: 'spec.nodeName!=',
});
const PATH = `/api/v1/pods?${SELECTORS}`;
/** Unasked, the API server ends a watch after half an hour to an hour. */
const WATCH_SECONDS = 86_400;
const MAX_LINE_BYTES = 2 * 1024 * 1024;

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
    this.#pool = poolOf(options, 1);
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

  /** Resolves when the API server has ended it. Without undici's streams, as each line has to wait for these. */
  #watch(resourceVersion: string, onOpen: () => void): Promise<void> {
    const query = new URLSearchParams({ watch: 'true', timeoutSeconds: String(WATCH_SECONDS), resourceVersion });
    const splitter = new LineSplitter(MAX_LINE_BYTES, () => {});
    const onLine = (line: Buffer): void => {
      const event = eventOf(line);
      // An ERROR is the last line of a watch.
      if (event !== undefined) this.#handler.onEvent(event);
    };
    return new Promise((resolve, reject) => {
      this.#pool.dispatch(
        { method: 'GET', path: `${PATH}&${query}`, headers: this.#headers, bodyTimeout: 0 },
        {
          onRequestStart: () => {},
          onResponseStart: (_controller, statusCode) => {
            if (statusCode === 200) onOpen();
            else reject(new Error(`watch of Pods: ${statusCode}`));
          },
          onResponseData: (_controller, chunk) => splitter.push(chunk).forEach(onLine),
          onResponseEnd: () => resolve(),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
  }
}
