// holdfast terminal <allocation>: the local terminal at a shell on the node. Whoever's connection breaks, a person's or
// a script's, is brought back to the same shell, and what the shell has not confirmed is sent again.

import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "@holdfast/kit/backoff";
import { clientOf, findServerAndOrg, type ServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { exitCodes, Refusal } from "../../failure.ts";
import { harmless } from "../../output.ts";
import { type Connection, type ConnectOptions, connectTerminal } from "./connection.ts";
import { mayPass } from "./failure.ts";
import { gatewayAccess } from "./gateway-access.ts";
import { describeUnconfirmed, keepTyped, passKeys, passPipe, type Typed } from "./input.ts";
import { type LocalTerminal, openLocalTerminal } from "./local-terminal.ts";
import { showProgress } from "./progress.ts";
import type { Ending } from "./terminal-socket.ts";

export type AttachOptions = ServerOptions & { session?: string };

/** The command ends, although the shell does not. */
type Leaving = { exitCode: number };

const retry = { firstMs: 200, maxMs: 3_000 };
/** After these the shell is there, and soon to be reached again. */
const passing = new Set(["terminal_gateway_draining", "terminal_stream_lost"]);
/** How long a broken connection is tried again; the shell itself waits longer. */
const PATIENCE_MS = 120_000;

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
    input: typed.input,
    onConfirmed: typed.confirmed,
    signal: leaving.signal,
  };
  let ending: Ending | undefined;
  try {
    shell.connection = await connectTerminal(connecting).finally(progress.clear);
    ending = await stay({ local, shell, typed, connecting, leave });
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
  } finally {
    await local.close({ shellEnded: typeof ending === "object" && "exit" in ending });
    const unconfirmed = describeUnconfirmed(typed.input.unconfirmed());
    if (unconfirmed) process.stderr.write(`${unconfirmed}\n`);
    tellHowToReturn(allocation.id, shell, ending);
  }
  if (leaving.signal.aborted) process.exitCode = (leaving.signal.reason as Leaving).exitCode;
  else process.exitCode = exitCodeOf(ending);
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
async function stay({ local, shell, typed, connecting, leave }: Stay): Promise<Ending | undefined> {
  const { signal } = connecting;
  const left = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  local.begin();
  local.onResize(() => shell.connection?.resize(local.size()));
  const pipe = local.interactive ? undefined : passPipe(local, typed);
  if (pipe) shell.spoke = pipe.shellSpoke;
  else passKeys(local, typed, { isConnected: () => shell.connection !== undefined, leave });
  try {
    while (shell.connection) {
      const { connection } = shell;
      shell.sessionId = connection.sessionId;
      const ending = await Promise.race([connection.ended, left]);
      connection.close();
      if (ending === undefined || !mayComeBack(ending)) return ending;
      shell.connection = undefined;
      local.note("The connection broke. Looking for the shell again; Ctrl-C leaves it to itself.");
      const resume = { sessionId: connection.sessionId, offset: connection.offset() };
      shell.connection = await comeBack({ ...connecting, resume, onStep: () => undefined }, connection.url);
      local.note("Back at the shell.");
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

function isBroken(ending: Ending): ending is "lost" | "unresponsive" {
  return ending === "lost" || ending === "unresponsive";
}

function mayComeBack(ending: Ending): boolean {
  if (isBroken(ending)) return true;
  return "failure" in ending && passing.has(ending.failure.code);
}

/** Tokens that nobody uses are counted: none is asked for while there is no gateway to use it at. */
async function comeBack(connecting: ConnectOptions, url: string): Promise<Connection> {
  const givenUpAt = performance.now() + PATIENCE_MS;
  const late = () => performance.now() > givenUpAt;
  for (let failures = 0; ; failures += 1) {
    try {
      if (late() || (await connecting.gateway.answers(url))) return await connectTerminal(connecting);
    } catch (error) {
      if (!mayPass(error) || late()) throw error;
    }
    await delay(backoffDelay(retry, failures), undefined, { signal: connecting.signal });
  }
}

function tellHowToReturn(allocationId: string, shell: Shell, ending: Ending | undefined): void {
  const goesOn = ending === undefined || isBroken(ending);
  if (!goesOn || shell.sessionId === undefined) return;
  process.stderr.write(
    `The shell goes on for a while. Back to it: holdfast terminal ${allocationId} --session ${shell.sessionId}\n`,
  );
}

/** The shell's own, or 128 and the signal that ended it, as a shell tells it of its children. */
function exitCodeOf(ending: Ending | undefined): number {
  if (ending === undefined) return exitCodes.failed;
  if (isBroken(ending)) {
    throw new Refusal("terminal_connection_lost", {
      message: "The connection to the terminal broke; what was sent last may not have arrived.",
      nextStep: "See in the shell how far it got.",
    });
  }
  if ("failure" in ending) throw ending.failure;
  const { code, signal } = ending.exit;
  if (signal === null) return code ?? exitCodes.failed;
  const number = Object.entries(constants.signals).find(
    ([name]) => name === signal || name === `SIG${signal}`,
  )?.[1];
  return number === undefined ? exitCodes.failed : 128 + number;
}
