// The way back to a shell after its connection was lost: tries with growing pauses until the shell is there, somebody
// says that it has ended, or the person stops. A line at the bottom says when the next try comes, and the keys.

import { setTimeout as delay } from "node:timers/promises";
import { asksGatewayFirst, reconnectPauseMs } from "@holdfast/contracts/terminal-reconnect";
import { Refusal } from "../../failure.ts";
import { type Connection, type ConnectOptions, connectTerminal } from "./connection.ts";
import { mayPass } from "./failure.ts";
import type { LocalTerminal } from "./local-terminal.ts";
import type { Ending } from "./terminal-socket.ts";

export type Reconnecting = {
  /** A try begins now, whatever is under way. */
  hurry(): void;
  /** Rejects with what ends the tries: a final answer, or the reason of `signal`. */
  comeBack(lost: Lost, ending: Ending): Promise<Connection>;
};

type Lost = Pick<Connection, "sessionId" | "offset" | "url">;

export type ReconnectOptions = {
  connecting: ConnectOptions;
  local: Pick<LocalTerminal, "note" | "status">;
  /** A script has nobody who would stop it. */
  patienceMs: number;
};

/** `state` is for the line, `sentence` for the record above it. */
type Why = { state: "Unresponsive" | "Disconnected"; sentence: string };

const silent: Why = { state: "Unresponsive", sentence: "Unresponsive: the gateway does not answer." };
const broken: Why = { state: "Disconnected", sentence: "Disconnected: the connection to the gateway broke." };
const reconnectKeys = "Ctrl-R: now · Ctrl-C: stop";
/** What keeps a shell away is reported once, when it does not pass by itself. */
const REPORTED_ATTEMPT = 4;

export function createReconnecting({ connecting, local, patienceMs }: ReconnectOptions): Reconnecting {
  const { gateway, signal: leaving } = connecting;
  let hurried = new AbortController();

  /** Undefined: it was cut short by a person who wants the next try now. */
  const unlessHurried = async <T>(doing: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> => {
    hurried = new AbortController();
    const { signal } = hurried;
    try {
      return await doing(AbortSignal.any([leaving, signal]));
    } catch (error) {
      leaving.throwIfAborted();
      if (signal.aborted) return undefined;
      throw error;
    }
  };

  const show = (text: string) => {
    const kept = connecting.input.unconfirmed();
    local.status(`${text} · ${reconnectKeys}${kept > 0 ? ` · ${kept} typed bytes kept` : ""}`);
  };

  const pause = async (attempt: number, { state }: Why, signal: AbortSignal) => {
    const until = performance.now() + reconnectPauseMs(attempt);
    for (let left = until - performance.now(); left > 0; left = until - performance.now()) {
      show(`${state}. Try ${attempt} in ${Math.ceil(left / 1_000)} s`);
      await delay(Math.min(left, 1_000), undefined, { signal });
    }
  };

  const tryOnce = async (attempt: number, lost: Lost, signal: AbortSignal): Promise<Connection | Why> => {
    show(`Reconnecting, try ${attempt}`);
    try {
      // A token is of no use while there is no gateway to use it at.
      const isThere = !asksGatewayFirst(attempt) || (await gateway.answers(lost.url, signal));
      signal.throwIfAborted();
      if (!isThere) return silent;
      const resume = { sessionId: lost.sessionId, offset: lost.offset() };
      const isReported = attempt === REPORTED_ATTEMPT;
      return await connectTerminal({ ...connecting, resume, onStep() {}, isReported, signal });
    } catch (error) {
      if (signal.aborted || !mayPass(error)) throw error;
      return { state: "Disconnected", sentence: `Disconnected: ${(error as Error).message}` };
    }
  };

  const comeBack = async (lost: Lost, ending: Ending) => {
    const givenUpAt = performance.now() + patienceMs;
    let why = reasonOf(ending);
    let isWanted = false;
    local.note(why.sentence);
    for (let attempt = 1; ; attempt += 1) {
      const latest = why;
      if (!isWanted) await unlessHurried((signal) => pause(attempt, latest, signal));
      const outcome = await unlessHurried((signal) => tryOnce(attempt, lost, signal));
      if (outcome && "sessionId" in outcome) return outcome;
      if (performance.now() > givenUpAt) throw lostForGood();
      isWanted = outcome === undefined;
      why = outcome ?? why;
      if (why.sentence === latest.sentence) continue;
      local.status(undefined);
      local.note(why.sentence);
    }
  };

  return {
    hurry: () => hurried.abort(),
    comeBack: (lost, ending) => comeBack(lost, ending).finally(() => local.status(undefined)),
  };
}

function reasonOf(ending: Ending): Why {
  if (ending === "unresponsive") return silent;
  if (typeof ending === "string" || "exit" in ending) return broken;
  return { state: "Disconnected", sentence: `Disconnected: ${ending.failure.message}` };
}

function lostForGood(): Refusal {
  return new Refusal("terminal_connection_lost", {
    message: "The connection to the terminal was lost and could not be restored.",
    nextStep: "See in the shell how far it got, if it still runs.",
  });
}
