/** What tests and samples need of a broker, whatever program it is. */
export interface MqttBroker {
  readonly port: number;
  readonly url: string;
  /** Stops listening and cuts every connection, as a broker that went down. */
  pause(): Promise<void>;
  /** Listens again on the port of before. Nothing is remembered of the clients. */
  resume(): Promise<void>;
  /** May be called again. */
  stop(): Promise<void>;
}
