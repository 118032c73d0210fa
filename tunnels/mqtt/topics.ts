/** What a base publishes below `koupleless_{env}/{identity}/base/`. */
export const MESSAGE_TYPES = [
  'heart',
  'queryBaseline',
  'health',
  'simpleBiz',
  'biz',
  'bizOperation',
  'batchInstallBizResponse',
] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/**
 * A message that is sent once must not be lost. All else comes again, or is asked for again, so that it is not worth an
 * acknowledgement for each message, nor a place among the few that a broker has in flight to a client.
 */
const QOS: Readonly<Record<MessageType, 0 | 1>> = {
  heart: 0,
  queryBaseline: 1,
  health: 0,
  simpleBiz: 0,
  biz: 0,
  bizOperation: 1,
  batchInstallBizResponse: 1,
};

/** Message types that show that a base is there. */
export const SIGNS_OF_LIFE: ReadonlySet<MessageType> = new Set(['heart', 'queryBaseline']);

/** What a client subscribes to, each filter with its quality of service. */
export type TopicFilters = Readonly<Record<string, { readonly qos: 0 | 1 }>>;

/** What a base executes from `koupleless_{env}/{identity}/`. */
export const COMMANDS = ['installBiz', 'uninstallBiz', 'queryAllBiz', 'health'] as const;
export type Command = (typeof COMMANDS)[number];

export interface BaseTopic {
  readonly identity: string;
  readonly type: MessageType;
}

/** The topics of one env. */
export class Topics {
  readonly #prefix: string;
  /** Topic on which this client talks to itself. Unlike all others it is not below a base, so that no base listens. */
  readonly echo: string;

  constructor(env: string, clientId: string) {
    this.#prefix = `koupleless_${env.toLowerCase()}`;
    // These three and NUL have a meaning in topics or are forbidden there.
    this.echo = `${this.#prefix}/controller/${clientId.replace(/[+#/\0]/g, '_')}/echo`;
  }

  /** All that the controller subscribes to. */
  filters(): TopicFilters {
    const filters = MESSAGE_TYPES.map((type) => [`${this.#prefix}/+/base/${type}`, { qos: QOS[type] }] as const);
    return { ...Object.fromEntries(filters), [this.echo]: { qos: 1 } };
  }

  command(identity: string, command: Command): string {
    return `${this.#prefix}/${identity}/${command}`;
  }

  /** Whose message of which type travels on `topic`; undefined for any other topic. */
  parse(topic: string): BaseTopic | undefined {
    const [prefix, identity, base, name, ...rest] = topic.split('/');
    if (prefix !== this.#prefix || identity === undefined || base !== 'base' || rest.length > 0) return undefined;
    const type = MESSAGE_TYPES.find((known) => known === name);
    return type && { identity, type };
  }
}
