// What terminals need of a host to hold shells: processes ("holders") that outlive the agent, each with one shell in a
// PTY, reached over a socket. The contract suite (test/drivers/pty) defines what every implementation must do.

import type { ShellUser } from "@holdfast/tasks/executor";
import type { Confined, Confinement } from "./confine.mjs";
import type { Control } from "./messages.mjs";
import type { SerialConsole } from "./serial.mjs";

export type PtyDriver = {
  /** Starts a holder. It is ready when its socket appears in the directory as `<id>.spare`. */
  launch: Launch;
  /** Rejects when the holder is gone, or does not respond in time. */
  connect(path: string, withinMs: number): Promise<HolderConnection>;
  /** What a holder has to do before it becomes this user. */
  confinementOf(user: ShellUser): Promise<Confinement>;
  /** Whether the host's service manager has every holder in a control group of its own. */
  hasControlGroups(): boolean;
};

export type Launch = (holder: { id: string; directory: string; orphanSeconds: number }) => {
  /** Called when it is certain that it will not become ready. */
  onFailure(report: (why: string) => void): void;
};

/** The holder's own description. */
export type Description =
  | { type: "spare"; pid: number }
  | ({ type: "shell"; pid: number; offset: number; end: number; orphanMs: number; notes: unknown } & Confined);

export type Orders = {
  user: ShellUser;
  env: Record<string, string>;
  size: { cols: number; rows: number };
  orphanMs: number;
  limits: { window: number; scrollback: number; input: number };
  /** Returned with its description, also to a later agent. */
  notes: unknown;
  confinement: Confinement;
  /** Instead of a shell: the console of a VM. The holder then stays root and runs no program. */
  console?: SerialConsole;
};

export type HolderEvents = {
  onBytes(bytes: Buffer): void;
  onControl(message: Control): void;
  /** It ended, or sent an invalid message. */
  onGone(): void;
};

export type HolderConnection = {
  /** As of connecting. */
  readonly first: Description;
  /** Rejects with the holder's own message. */
  become(orders: Orders): Promise<Description & { type: "shell" }>;
  /** Rejects when it does not respond in time: its tenant may have stopped it. */
  describe(withinMs: number): Promise<Description & { type: "shell" }>;
  listen(events: HolderEvents): void;
  send(message: Control): void;
  /** False: it does not read, and there is no room for more. */
  sendBytes(bytes: Buffer, most: number): boolean;
  pause(): void;
  resume(): void;
  /** Closes only the connection: the shell keeps running. */
  leave(): void;
};
