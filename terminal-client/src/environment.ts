// What a client of terminals needs of the place it runs in: a page or a command line. Everything else is the same for both.

import type { Described, Failure } from "./failures.ts";
import type { Grant } from "./states.ts";

export type SocketEvents<Bytes> = {
  onOpen(): void;
  onText(text: string): void;
  onBytes(bytes: Bytes): void;
  /** Once, also when it never opened. `detail`: what is known of the reason. */
  onClose(detail?: string): void;
};

export type Socket<Bytes> = {
  isOpen(): boolean;
  send(data: string | Bytes): void;
  /** From any state; nothing that happens afterwards matters. */
  close(): void;
};

export type RouteCheck = { reachable: boolean; detail?: string };

export type Environment<Bytes extends Uint8Array> = {
  /** Output is requested from `offset` on, where the same shell is shown already. */
  requestToken(wanted: {
    shell: string | undefined;
    offset: number | undefined;
    signal: AbortSignal;
  }): Promise<Grant>;
  openSocket(url: string, protocols: string[], events: SocketEvents<Bytes>): Socket<Bytes>;
  /** Whether a gateway answers at the address of terminals. */
  checkRoute(url: string, signal: AbortSignal): Promise<RouteCheck>;
  /** To the api: a failure that only this client knows. */
  report(sessionId: string, failure: Failure): void;
  /** An error of `requestToken` that is no answer of the api. */
  describeError(error: unknown): Described;
};

/**
 * How output that starts now relates to what is shown. `first`: nothing is shown. `continued`: it follows. `gap`: it would,
 * but output in between is lost. `replaced`: it is another shell's, or older than what is shown.
 */
export type OutputStart = "first" | "continued" | "gap" | "replaced";

export type Display<Bytes> = {
  /** `replay`: so many of the next bytes were shown before, to somebody. */
  start(relation: OutputStart, replay: number): void;
  /** `shown` when it was processed: then more may come. */
  write(bytes: Bytes, shown: () => void): void;
};
