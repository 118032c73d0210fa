/** What a base says of itself in a heartbeat. Strings are the base's own words, unchecked but for `identity`. */
export interface BaseInfo {
  /** Unique in an env; a lower-case RFC 1123 subdomain of at most 57 characters. */
  readonly identity: string;
  readonly name: string;
  readonly version: string;
  readonly clusterName: string;
  /** A literal IP address, as the base knows itself. */
  readonly ip: string;
  readonly hostName: string;
  /** The port of the base's arklet over HTTP; 0 over MQTT. */
  readonly port: number;
}

/** Whether a base says the same of itself. Asked for each heartbeat, so it makes no garbage. */
export function isSameBase(a: BaseInfo, b: BaseInfo): boolean {
  return (
    a === b ||
    (a.identity === b.identity &&
      a.name === b.name &&
      a.version === b.version &&
      a.clusterName === b.clusterName &&
      a.ip === b.ip &&
      a.hostName === b.hostName &&
      a.port === b.port)
  );
}

/**
 * The part of a base's health that the controller uses. Bytes; undefined where the base did not say or has no limit.
 */
export interface BaseHealth {
  readonly metaspaceUsedBytes: number | undefined;
  readonly metaspaceCommittedBytes: number | undefined;
  /** undefined = unlimited (the JVM says -1). */
  readonly metaspaceMaxBytes: number | undefined;
  /** Seconds since the JVM started: a smaller value than before means another process under the same identity. */
  readonly runTimeSeconds: number | undefined;
  readonly javaVersion: string | undefined;
  /** The name that the base has as a module of itself ("master biz"). */
  readonly masterName?: string;
}
