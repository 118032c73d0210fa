/** What a TLS connection to the API server needs; all PEM texts. */
export interface TlsSettings {
  ca?: string;
  cert?: string;
  key?: string;
  /** The name to verify the server's certificate against, when it is not the host of the URL. */
  servername?: string;
  rejectUnauthorized: boolean;
}

/** Where the API server is and how to prove who we are. Files behind it are read off the hot path. */
export interface ClusterAccess {
  readonly server: URL;
  /** A new object whenever certificates on disk have changed. */
  tls(): TlsSettings;
  /** The value of the authorization header to send now. */
  authorization(): string | undefined;
  /**
   * Reads the credential again after a 401; true when it now differs from `used`, or the certificates have changed,
   * so that one retry makes sense.
   */
  onUnauthorized(used: string | undefined): Promise<boolean>;
  /** Calls back after `tls()` has changed; connections made earlier should be replaced. */
  onTlsChange(listener: () => void): void;
  /** Reads the files again each minute until `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>;
}
