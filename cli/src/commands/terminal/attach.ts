// holdfast terminal <allocation>: the local terminal at a shell on the node. Whoever's connection breaks, a person's or
// a script's, is brought back to the same shell, and what the shell has not confirmed is sent again.

import { constants } from "node:os";
import { mayFindShellAgain } from "@holdfast/contracts/reasons/terminal";
import { clientOf, findServerAndOrg, type ServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { exitCodes } from "../../failure.ts";
import { harmless } from "../../output.ts";
import { type Connection, type ConnectOptions, connectTerminal } from "./connection.ts";
import { TerminalFailure, withRepair } from "./failure.ts";
import { gatewayAccess } from "./gateway-access.ts";
import { describeUnconfirmed, keepTyped, passKeys, passPipe, type Typed } from "./input.ts";
import { type LocalTerminal, openLocalTerminal } from "./local-terminal.ts";
import { noteNodeAway } from "./node-away.ts";
import { showProgress } from "./progress.ts";
import { createReconnecting } from "./reconnect.ts";
import type { Ending } from "./terminal-socket.ts";

export type AttachOptions = ServerOptions & { session?: string };

/** The last word on the shell, or on the way to it. */
type Final = Exclude<Ending, string>;

/** The command ends, although the shell does not. */
type Leaving = { exitCode: number };

/** How long a script looks for its shell, which ends by itself when nobody is at it. A person decides on their own. */
const SCRIPT_PATIENCE_MS = 600_000;

/** What was typed last is confirmed a moment later. */
const LEAVE_WITHIN_MS = 1_000;

export async function attach(wanted: string, options: AttachOptions): Promise<void> {
  const server = await findServerAndOrg(options);
  const client = clientOf(server);
  const allocation = await findAllocation(client, wanted);
  const local = openLocalTerminal();
  const leaving = new AbortController();
  const leave = (exitCode: number) => leaving.abort({ exitCode } satisfies Leaving);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
    process.once(signal, () => leave(128 + constants.signals[signal]));
  }
  local.onOutputClosed(() => leave(128 + constants.signals.SIGPIPE));

  const progress = showProgress(harmless(`${allocation.username} on ${allocation.node_name}`), process.stderr);
  const shell: Shell = { connection: undefined };
  const typed = keepTyped(local, () => shell.connection?.sendInput());
  const connecting: ConnectOptions = {
    client,
    gateway: gatewayAccess(server),
    allocationId: allocation.id,
    ...(options.session === undefined ? {} : { resume: { sessionId: options.session } }),
    size: local.size,
    onStep: progress.reached,
    onOutput: (bytes, done) => {
      shell.spoke?.();
      local.write(bytes, done);
    },
    onNodeAway: noteNodeAway(local, () => shell.connection && redraw(shell.connection, local)),
    input: typed.input,
    onConfirmed: typed.confirmed,
    isReported: true,
    signal: leaving.signal,
  };
  let ending: Final | undefined;
  let hasEnded = false;
  try {
    shell.connection = await connectTerminal(connecting)
      .catch((error: unknown) => Promise.reject(withRepair(error, allocation)))
      .finally(progress.clear);
    ending = await stay({ local, shell, typed, connecting, leave });
  } catch (error) {
    if (leaving.signal.aborted) return;
    hasEnded = error instanceof TerminalFailure;
    throw error;
  } finally {
    await local.close({ shellEnded: typeof ending === "object" && "exit" in ending });
    const unconfirmed = describeUnconfirmed(typed.input.unconfirmed());
    if (unconfirmed) process.stderr.write(`${unconfirmed}\n`);
    if (!hasEnded && ending === undefined) tellHowToReturn(allocation.id, shell);
    if (leaving.signal.aborted) process.exitCode = (leaving.signal.reason as Leaving).exitCode;
  }
  if (!leaving.signal.aborted) process.exitCode = exitCodeOf(ending);
}

type Shell = {
  /** Undefined while it is broken. */
  connection: Connection | undefined;
  sessionId?: string;
  spoke?: () => void;
};

type Stay = {
  local: LocalTerminal;
  shell: Shell;
  typed: Typed;
  connecting: ConnectOptions;
  leave: (exitCode: number) => void;
};

/** Undefined: the person left. */
async function stay({ local, shell, typed, connecting, leave }: Stay): Promise<Final | undefined> {
  const { signal } = connecting;
  const left = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  local.begin();
  local.onResize(() => shell.connection?.resize(local.size()));
  const pipe = local.interactive ? undefined : passPipe(local, typed);
  if (pipe) shell.spoke = pipe.shellSpoke;
  else passKeys(local, typed, { isConnected: () => shell.connection !== undefined, hurry: () => hurry(), leave });
  const patienceMs = local.interactive ? Number.POSITIVE_INFINITY : SCRIPT_PATIENCE_MS;
  const { hurry, comeBack } = createReconnecting({ connecting, local, patienceMs });
  try {
    while (shell.connection) {
      const { connection } = shell;
      shell.sessionId = connection.sessionId;
      const ending = await Promise.race([connection.ended, left]);
      if (ending === undefined) await typed.settled(LEAVE_WITHIN_MS);
      connection.close();
      if (ending === undefined || isFinal(ending)) return ending;
      shell.connection = undefined;
      shell.connection = await comeBack(connection, ending);
      local.note("Reconnected.");
      redraw(shell.connection, local);
    }
    return undefined;
  } finally {
    pipe?.stop();
  }
}

/** A full-screen program draws itself anew when its size changes; over it stands what was noted here. */
function redraw(connection: Connection, local: LocalTerminal): void {
  const { cols, rows } = local.size();
  if (local.isFullScreen()) connection.resize({ cols, rows: Math.max(1, rows - 1) });
  connection.resize({ cols, rows });
}

function isFinal(ending: Ending): ending is Final {
  if (typeof ending === "string") return false;
  return !("failure" in ending && mayFindShellAgain(ending.failure.code));
}

function tellHowToReturn(allocationId: string, shell: Shell): void {
  if (shell.sessionId === undefined) return;
  const state = shell.connection ? "The shell keeps running for a while." : "The shell may still be running.";
  process.stderr.write(`${state} Return to it: holdfast terminal ${allocationId} --session ${shell.sessionId}\n`);
}

/** The shell's own, or 128 and the signal that ended it, as a shell tells it of its children. */
function exitCodeOf(ending: Final | undefined): number {
  if (ending === undefined) return exitCodes.failed;
  if ("failure" in ending) throw ending.failure;
  const { code, signal } = ending.exit;
  if (signal === null) return code ?? exitCodes.failed;
  const number = Object.entries(constants.signals).find(
    ([name]) => name === signal || name === `SIG${signal}`,
  )?.[1];
  return number === undefined ? exitCodes.failed : 128 + number;
}
