// The local terminal at a shell: input to the client, the client's states to the person, until the shell or the way to it
// has ended, or the person leaves. A connection that breaks or does not answer ends nothing: the client reconnects.

import { exhaustive } from "@holdfast/kit/exhaustive";
import { type ClientOptions, openTerminalClient, type TerminalClient } from "@holdfast/terminal-client/client";
import type { Environment } from "@holdfast/terminal-client/environment";
import type { Failure } from "@holdfast/terminal-client/failures";
import type { Exit, State } from "@holdfast/terminal-client/states";
import { Refusal } from "../../failure.ts";
import { controlInput, passKeys, passPipe } from "./input.ts";
import type { LocalTerminal } from "./local-terminal.ts";
import type { Progress } from "./progress.ts";
import { showStates } from "./status.ts";

/** What ended the command. `left`: the person did. */
export type Ending = { exit: Exit } | { failure: Failure } | { gaveUp: Refusal } | "left";

export type SessionOptions = {
  /** The shell to return to; undefined: a new one. */
  shell: string | undefined;
  environment: Environment<Buffer>;
  local: LocalTerminal;
  progress: Progress;
  /** The person leaves. */
  signal: AbortSignal;
  leave(exitCode: number): void;
};

export type SessionEnd = {
  ending: Ending;
  /** The shell that was reached last. */
  shell: string | undefined;
  /** Whether it was connected when the command ended. */
  wasConnected: boolean;
  /** Typed bytes of which nobody confirmed that they reached the shell. */
  unconfirmed: number;
};

/** How long a script tries to return to its shell, which ends by itself when nobody is connected. A person decides. */
const SCRIPT_PATIENCE_MS = 600_000;
/** What was typed last is confirmed a moment later. */
const LEAVE_WITHIN_MS = 1_000;

export async function runSession(options: SessionOptions): Promise<SessionEnd> {
  const { local, signal } = options;
  const ended = Promise.withResolvers<Ending>();
  let shell: string | undefined;
  let input: { stop(): void; onOutput(): void } | undefined;
  const show = showStates({
    local,
    progress: options.progress,
    unconfirmed: () => client.unconfirmed(),
    redraw: () => redraw(client, local),
  });

  const onState = (state: State) => {
    show(state);
    const ending = endingOf(state) ?? (local.interactive ? undefined : patienceOver(state));
    if (ending) return ended.resolve(ending);
    if (!isConnected(state)) return;
    ({ shell } = state);
    input ??= startInput();
  };

  const startInput = () => {
    local.begin();
    local.onResize(() => client.resize(local.size()));
    if (!local.interactive) return passPipe(local, typing);
    const reconnecting = { isConnected: () => isConnected(client.state()), hurry: client.tryAgain };
    passKeys(local, typing, { ...reconnecting, leave: options.leave });
    return { stop() {}, onOutput() {} };
  };

  const display: ClientOptions<Buffer>["display"] = {
    start() {},
    write(bytes, shown) {
      input?.onOutput();
      local.write(bytes, shown);
    },
  };
  const client = openTerminalClient({
    shell: options.shell,
    environment: options.environment,
    display,
    onState,
    onAcknowledged: () => typing.acknowledged(),
  });
  const typing = controlInput(local, client);
  client.resize(local.size());
  signal.addEventListener("abort", () => ended.resolve("left"));
  if (signal.aborted) ended.resolve("left");

  const ending = await ended.promise;
  const wasConnected = isConnected(client.state());
  if (ending === "left" && wasConnected) await typing.settled(LEAVE_WITHIN_MS);
  input?.stop();
  show.end();
  client.leave();
  return { ending, shell, wasConnected, unconfirmed: client.unconfirmed() };
}

/** Undefined while there is a shell, or a way to one. */
export function endingOf(state: State): Ending | undefined {
  switch (state.phase) {
    case "ended":
      return { exit: state.exit };
    case "failed":
      return { failure: state.failure };
    case "asking":
    case "joining":
    case "checking":
    case "waiting":
    case "ready":
    case "unresponsive":
    case "pausing":
    case "probing":
    case "stopped":
      return undefined;
    default:
      return exhaustive(state);
  }
}

function patienceOver(state: State): Ending | undefined {
  if (state.phase !== "pausing" || performance.now() - state.lost.since <= SCRIPT_PATIENCE_MS) return undefined;
  const gaveUp = new Refusal("terminal_connection_lost", {
    message: "The connection to the terminal was lost and could not be restored.",
    nextStep: "See in the shell how far it got, if it still runs.",
  });
  return { gaveUp };
}

function isConnected(state: State): state is Extract<State, { phase: "ready" | "unresponsive" }> {
  return state.phase === "ready" || state.phase === "unresponsive";
}

/** A full-screen program draws itself again when its size changes; notes of this command are written over it. */
function redraw(client: Pick<TerminalClient<Buffer>, "resize">, local: LocalTerminal): void {
  const { cols, rows } = local.size();
  if (local.isFullScreen()) client.resize({ cols, rows: Math.max(1, rows - 1) });
  client.resize({ cols, rows });
}
