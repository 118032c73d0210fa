import type { BaseView } from './view.ts';

/** What bases need to find the controller, and where they may put what they write. */
export interface BaseLinks {
  readonly env: string;
  readonly brokerUrl: string;
  readonly controllerUrl: string;
  /** Between controller and bases over HTTP. */
  readonly token: string;
  /** Goes with the demo. */
  readonly directory: string;
  /** To be called when a base took or ended a command, or has other modules. */
  readonly onChange: () => void;
}

/** The bases of a demo. */
export interface Cast {
  /** Resolves when all of them are under way. Until then `stop` ends what has begun. */
  start(): Promise<void>;
  /** What they themselves say, past the controller and the API server. */
  bases(): BaseView[];
  stop(): Promise<void>;
}
