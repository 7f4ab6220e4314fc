// holdfast terminal <allocation>: the local terminal at a shell on the node. Whoever's connection breaks, a person's or a
// script's, is reconnected to the same shell, and what the shell has not confirmed is sent again.

import { constants } from "node:os";
import { clientOf, findServerAndOrg, type ServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { exitCodes } from "../../failure.ts";
import { harmless } from "../../output.ts";
import { type CommandEnvironment, commandEnvironment } from "./environment.ts";
import { errorOf, TerminalFailure, withAdvice } from "./failure.ts";
import { describeUnconfirmed } from "./input.ts";
import { openLocalTerminal } from "./local-terminal.ts";
import { showProgress } from "./progress.ts";
import { type Ending, runSession, type SessionEnd } from "./session.ts";

export type AttachOptions = ServerOptions & { session?: string };

/** The command ends, although the shell does not. */
type Leaving = { exitCode: number };

export async function attach(wanted: string, options: AttachOptions): Promise<void> {
  const server = await findServerAndOrg(options);
  const client = clientOf(server);
  const allocation = await findAllocation(client, wanted);
  await runTerminal({
    environment: commandEnvironment(client, server, { allocationId: allocation.id }),
    shell: options.session,
    where: `${allocation.username} on ${allocation.node_name}`,
    returnBy: `holdfast terminal ${allocation.id}`,
    advise: (error) => withAdvice(error, allocation),
  });
}

/** Until the shell or the console ends, or the person leaves it. */
export async function runTerminal(terminal: {
  environment: CommandEnvironment;
  /** One that is open already. */
  shell: string | undefined;
  where: string;
  /** The command that returns to it. */
  returnBy: string;
  advise: (error: unknown) => unknown;
}): Promise<void> {
  const { environment } = terminal;
  const local = openLocalTerminal();
  const leaving = new AbortController();
  const leave = (exitCode: number) => leaving.abort({ exitCode } satisfies Leaving);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
    process.once(signal, () => leave(128 + constants.signals[signal]));
  }
  local.onOutputClosed(() => leave(128 + constants.signals.SIGPIPE));

  const session = await runSession({
    shell: terminal.shell,
    environment,
    local,
    progress: showProgress(harmless(terminal.where), process.stderr),
    signal: leaving.signal,
    leave,
  });
  const { ending } = session;
  await local.close({ shellEnded: ending !== "left" && "exit" in ending });
  const unconfirmed = describeUnconfirmed(session.unconfirmed);
  if (unconfirmed) process.stderr.write(`${unconfirmed}\n`);
  const error = errorOfEnding(ending);
  const mayRun = ending === "left" || (error !== undefined && !(error instanceof TerminalFailure));
  if (mayRun) describeReturn(terminal.returnBy, session);
  if (ending === "left") {
    process.exitCode = (leaving.signal.reason as Leaving).exitCode;
    return;
  }
  await environment.reported();
  if (error !== undefined) throw terminal.advise(error);
  if ("exit" in ending) process.exitCode = exitCodeOf(ending.exit);
}

function errorOfEnding(ending: Ending): unknown {
  if (ending === "left" || "exit" in ending) return undefined;
  return "gaveUp" in ending ? ending.gaveUp : errorOf(ending.failure);
}

/** How to return to a shell that did not end. */
function describeReturn(command: string, { shell, wasConnected }: SessionEnd): void {
  if (shell === undefined) return;
  const state = wasConnected ? "The shell keeps running for a while." : "The shell may still be running.";
  process.stderr.write(`${state} Return to it: ${command} --session ${shell}\n`);
}

/** The shell's own, or 128 and the signal that ended it, as a shell reports it of its children. */
function exitCodeOf({ code, signal }: { code: number | null; signal: string | null }): number {
  if (signal === null) return code ?? exitCodes.failed;
  const number = Object.entries(constants.signals).find(
    ([name]) => name === signal || name === `SIG${signal}`,
  )?.[1];
  return number === undefined ? exitCodes.failed : 128 + number;
}
