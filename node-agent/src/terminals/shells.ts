// Shells in their holders: started for a user, adopted from an earlier agent process, ended when no longer needed.

import { correlationIdForm } from "@holdfast/contracts/headers";
import { MOST_INPUT_BYTES, SCROLLBACK_BYTES, WINDOW_BYTES } from "@holdfast/contracts/terminal/frames";
import { isAlive, signalIfAlive } from "@holdfast/kit/processes";
import type { Terminals as TaskTerminals } from "@holdfast/tasks/executor";
import type { Description, PtyDriver } from "../drivers/pty/driver.ts";
import type { FoundSocket } from "./directory.ts";
import { shellEnvironment } from "./environment.ts";
import type { Holder, Holders } from "./spare-holders.ts";
import { createTerminal } from "./terminal.ts";

type Opening = Parameters<TaskTerminals["open"]>[0];

export type Shells = {
  /** Cleans up when it rejects. */
  start(wanted: Opening, signal: AbortSignal): Promise<{ holder: Holder; kept: Description & { type: "shell" } }>;
  /** Undefined: there was no shell, or it could not be reached and was ended. */
  takeUp(
    found: FoundSocket & { kind: "shell" },
  ): Promise<{ holder: Holder; correlationId: string; detachedMs: number } | undefined>;
  /** For a holder that belongs to no terminal. */
  end(holder: Holder): Promise<void>;
};

const LONGEST_DETACHED_MS = 24 * 3600_000;

export function createShells(options: {
  driver: PtyDriver;
  holders: Holders;
  at: (name: string) => string;
  /** How long the holder of an earlier agent process may take to respond. */
  answerMs: number;
  /** See `TerminalOptions`. */
  obeyMs?: number | undefined;
}): Shells {
  const { driver, holders } = options;

  const end = async (holder: Holder) => {
    const terminal = createTerminal({
      sessionId: "",
      holder,
      ...{ detachedMs: 0, obeyMs: options.obeyMs },
      dial: () => Promise.reject(new Error("it is ending")),
      onFailure() {},
      onRetry() {},
      onEnded: () => holders.forget(holder.name),
    });
    await terminal.end();
  };

  type At = Awaited<ReturnType<Opening["at"]>>;
  /** A console runs nothing, so there is nothing to confine. */
  const accountOf = async (at: At, sessionId: string) => {
    if ("user" in at) {
      const { user } = at;
      return { user, env: shellEnvironment(user, sessionId), confinement: await driver.confinementOf(user) };
    }
    const user = { name: "", uid: 0, gid: 0, home: "/", shell: "" };
    const env = { HOLDFAST_SESSION_ID: sessionId };
    return { user, env, confinement: { directories: [], cgroups: [] }, console: at.console };
  };

  return {
    end,
    async start(wanted, signal) {
      const taking = holders.take(wanted);
      taking.catch(() => {}); // It is awaited below, after the user was found.
      try {
        const at = await untilAborted(wanted.at(), signal);
        const holder = await untilAborted(taking, signal);
        const kept = await untilAborted(
          holder.connection.become({
            ...(await accountOf(at, wanted.sessionId)),
            size: wanted.size,
            orphanMs: wanted.detachedMs,
            limits: { window: WINDOW_BYTES, scrollback: SCROLLBACK_BYTES, input: MOST_INPUT_BYTES },
            notes: { correlation_id: wanted.correlationId },
          }),
          signal,
        );
        return { holder, kept };
      } catch (error) {
        void taking.then(end, () => {});
        throw error;
      }
    },
    async takeUp({ name, holder: process }) {
      try {
        if (!isAlive(process)) throw new Error("its process has ended");
        const connection = await driver.connect(options.at(name), options.answerMs);
        const { first } = connection;
        const holder = { connection, process, name };
        // Assigned to a session that never started a shell in it.
        if (first.type === "spare") {
          await end(holder);
          return undefined;
        }
        const { correlation_id } = (first.notes ?? {}) as Record<string, unknown>;
        const correlationId =
          typeof correlation_id === "string" && correlationIdForm.test(correlation_id) ? correlation_id : "";
        const detachedMs = Math.min(Math.max(0, first.orphanMs), LONGEST_DETACHED_MS);
        return { holder, correlationId, detachedMs };
      } catch {
        // Stopped by its tenant, or broken: it could never be ended otherwise.
        signalIfAlive(process, "SIGKILL");
        await holders.forget(name);
        return undefined;
      }
    },
  };
}

export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
