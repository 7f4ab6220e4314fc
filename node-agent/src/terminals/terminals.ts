// All terminals of this host: opens them, adopts those of an earlier agent process, ends them all when the
// node is revoked. Loaded with the first one (on-demand.ts).

import { closeSync, constants, openSync } from "node:fs";
import { agentWaitMs } from "@holdfast/contracts/terminal/deadlines";
import { PING_MS } from "@holdfast/contracts/terminal/liveness";
import { type OpenedShell, TaskFailed, type Terminals as TaskTerminals } from "@holdfast/tasks/executor";
import type { Description, PtyDriver } from "../drivers/pty/driver.ts";
import { ptyDriver } from "../drivers/pty/pty-driver.ts";
import { findSockets, makeDirectory, removeOldTaskNotes, sessionOfTask } from "./directory.ts";
import { isStreamFailure } from "./failures.ts";
import { createGatewayDialler, type GatewayDiallerOptions } from "./gateway-dialler.ts";
import { createShells, untilAborted } from "./shells.ts";
import { createHolders, type Holder } from "./spare-holders.ts";
import { createTerminal, type Terminal } from "./terminal.ts";

type Opening = Parameters<TaskTerminals["open"]>[0];

export type TerminalsOptions = GatewayDiallerOptions & {
  onFailure: (code: string, detail: string, correlationId: string | undefined) => void;
  /** Before the gateway is dialled again. */
  onRetry: (code: string, detail: string, correlationId: string | undefined) => void;
  driver?: PtyDriver;
  /** How long a spare holder is kept after the last terminal. */
  keepSpareMs?: number;
  /** How long the holder of an earlier agent process may take to respond. */
  answerMs?: number;
  /** How long a holder may take to end when it is asked to, before it is killed. */
  obeyMs?: number;
};

export type Terminals = TaskTerminals & {
  /** Adopts the shells of an earlier agent process. */
  resume(): Promise<void>;
  count(): number;
  endAll(): Promise<void>;
  /** The shells keep running. */
  stop(): void;
};

const ORPHAN_SECONDS = 600;
const KEEP_SPARE_MS = 3600_000;
/** A holder that does not respond is killed with its shell, so this must be longer than a host may stall. */
const ANSWER_MS = 20_000;
/** Lets the shell that was just opened start first. */
const SPARE_AFTER_MS = 500;

export function createTerminals(options: TerminalsOptions): Terminals {
  const { stateDir, driver = ptyDriver(), obeyMs } = options;
  const directory = makeDirectory(stateDir);
  // A socket's address has room for 107 bytes, and a state directory may be deep.
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const at = (name: string) => `/proc/self/fd/${descriptor}/${name}`;
  const holders = createHolders({ directory, at, driver, orphanSeconds: ORPHAN_SECONDS });
  const shells = createShells({ driver, holders, at, answerMs: options.answerMs ?? ANSWER_MS, obeyMs });
  const gateway = createGatewayDialler(options);
  const terminals = new Map<string, Terminal>();
  const opening = new Set<string>();
  let checking: NodeJS.Timeout | undefined;
  let unused: NodeJS.Timeout | undefined;
  let stopped = false;

  const keep = (holder: Holder, about: { sessionId: string; correlationId: string; detachedMs: number }) => {
    const { sessionId, correlationId, detachedMs } = about;
    const terminal = createTerminal({
      sessionId,
      ...{ holder, detachedMs, obeyMs },
      dial: (signal) => gateway.dial({ sessionId, correlationId }, signal),
      onFailure: (code, detail) => options.onFailure(code, detail, correlationId),
      onRetry: (code, detail) => options.onRetry(code, detail, correlationId),
      onEnded: () => {
        if (terminals.get(sessionId) === terminal) terminals.delete(sessionId);
        if (terminals.size === 0) rest();
        return holders.forget(holder.name);
      },
    });
    terminals.set(sessionId, terminal);
    checking ??= setInterval(() => {
      for (const one of terminals.values()) one.check();
    }, PING_MS).unref();
    clearTimeout(unused);
    return terminal;
  };

  const rest = () => {
    clearInterval(checking);
    checking = undefined;
    clearTimeout(unused);
    unused = setTimeout(() => holders.letGo(), options.keepSpareMs ?? KEEP_SPARE_MS).unref();
  };

  const openedShell = (kept: Description & { type: "shell" }): OpenedShell => {
    const { pid, offset, private_directories, control_group } = kept;
    return { pid, offset, private_directories, control_group: control_group || driver.hasControlGroups() };
  };

  const open = async (wanted: Opening) => {
    const { sessionId, correlationId } = wanted;
    if (terminals.has(sessionId) || opening.has(sessionId))
      throw new TaskFailed("terminal_pty_failed", "This terminal is open already.");
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), agentWaitMs(wanted.withinMs));
    const given = new AbortController();
    const signal = AbortSignal.any([wanted.signal, late.signal, given.signal]);
    opening.add(sessionId);
    const dialling = gateway.dialPatiently({ sessionId, correlationId }, signal, ({ code, detail }) =>
      options.onRetry(code, detail, correlationId),
    );
    const starting = shells.start(wanted, signal);
    try {
      const [stream, shell] = await Promise.all([dialling, starting]);
      const terminal = keep(shell.holder, { sessionId, correlationId, detachedMs: wanted.detachedMs });
      terminal.join(stream, shell.kept);
      return openedShell(shell.kept);
    } catch (error) {
      const isLate = late.signal.aborted;
      given.abort();
      const [dialled, started] = await Promise.allSettled([dialling, starting]);
      if (dialled.status === "fulfilled") dialled.value.close();
      // A shell may take seconds to end, which would be too late to report the failure.
      if (started.status === "fulfilled") void shells.end(started.value.holder);
      if (wanted.signal.aborted) throw wanted.signal.reason;
      if (isLate && dialled.status === "rejected") throw gateway.silence();
      throw explain(error, isLate);
    } finally {
      clearTimeout(timer);
      opening.delete(sessionId);
    }
  };

  return {
    async open(wanted) {
      try {
        return await open(wanted);
      } catch (error) {
        // A terminal that nobody waits for any more is not a failure of this host.
        if (error instanceof TaskFailed && error.code !== "terminal_session_unknown")
          options.onFailure(error.code, error.message, wanted.correlationId);
        throw error;
      } finally {
        setTimeout(() => holders.keepOne(), SPARE_AFTER_MS).unref();
        if (terminals.size === 0) rest();
      }
    },
    async recover(taskId, signal) {
      const sessionId = sessionOfTask(stateDir, taskId);
      const terminal = sessionId === undefined ? undefined : terminals.get(sessionId);
      const kept = terminal && (await untilAborted(terminal.joined, signal));
      return kept && openedShell(kept);
    },
    async resume() {
      removeOldTaskNotes(stateDir);
      await Promise.all(
        findSockets(stateDir).map(async (found) => {
          if (found.kind !== "shell")
            return found.kind === "spare" ? holders.adopt(found.name) : holders.forget(found.name);
          const resumed = await shells.takeUp(found);
          if (resumed) keep(resumed.holder, { sessionId: found.sessionId, ...resumed }).reconnect();
        }),
      );
      if (terminals.size === 0) rest();
    },
    count: () => terminals.size,
    async endAll() {
      await Promise.all([...terminals.values()].map((one) => one.end()));
    },
    stop() {
      if (stopped) return;
      stopped = true;
      clearInterval(checking);
      clearTimeout(unused);
      for (const one of terminals.values()) one.leave();
      terminals.clear();
      gateway.close();
      void holders.close().then(() => closeSync(descriptor));
    },
  };
}

function explain(error: unknown, late: boolean): Error {
  if (error instanceof TaskFailed) return error;
  if (late) return new TaskFailed("terminal_pty_failed", "The shell did not start in time.");
  if (isStreamFailure(error)) return new TaskFailed(error.code, error.detail);
  return new TaskFailed("terminal_pty_failed", error instanceof Error ? error.message : String(error));
}
