// What the internal side of an api process keeps fresh: its certificate, and the streams of the gateways that follow it.

export type InternalUpkeep = {
  /** Replaces the listener's certificate when half of its life is over. */
  renewCertificate(now: Date): Promise<boolean>;
  /** Publishes nodes whose certificates are no longer accepted. */
  announceRevocations(): Promise<void>;
  /** Shows the gateways that this process is alive. */
  keepAlive(): void;
};
