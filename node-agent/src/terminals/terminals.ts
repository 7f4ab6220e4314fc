// All terminals of this host: opens them, finds those of an earlier agent again, ends them all when the
// node is revoked. Loaded with the first one (lazily.ts).

import { closeSync, constants, openSync, renameSync, writeFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { correlationIdForm } from "@holdfast/contracts/headers";
import { agentWaitMs } from "@holdfast/contracts/terminal-deadlines";
import { MOST_INPUT_BYTES, SCROLLBACK_BYTES, WINDOW_BYTES } from "@holdfast/contracts/terminal-frames";
import { PING_MS } from "@holdfast/contracts/terminal-liveness";
import { isAlive, signalIfAlive } from "@holdfast/kit/processes";
import { TaskFailed, type Terminals as TaskTerminals } from "@holdfast/tasks/executor";
import { confinementOf, hasSystemd, type ShellLimits, shellLimits } from "../drivers/pty/confinement.ts";
import { connectToHolder } from "../drivers/pty/holder-connection.ts";
import { type Launch, launchWith } from "../drivers/pty/launch.ts";
import type { Credentials } from "../link/client.ts";
import { findSockets, type GatewayNote, gatewayNotePath, makeDirectory } from "./directory.ts";
import { shellEnvironment } from "./environment.ts";
import { type StreamFailure, streamFailure } from "./failures.ts";
import { createDialGateway } from "./gateway-address.ts";
import { createHolders, type Holder } from "./spare-holders.ts";
import { createDialler, type Stream } from "./stream.ts";
import { createTerminal, type Terminal } from "./terminal.ts";

type Opening = Parameters<TaskTerminals["open"]>[0];

export type TerminalsOptions = {
  stateDir: string;
  nodeId: string;
  instanceId: string;
  bootId: string;
  /** Its address: as this host's setting says, or else as the server told it in the profile. */
  gateway: () => { set: string | undefined; told: string | undefined };
  /** Throws a HostProblem while this host has no usable identity. */
  credentials: () => Credentials;
  lookup: LookupFunction;
  /** The address may be an old one: asks the server for the present profile. */
  refreshProfile: () => void;
  onFailure: (code: string, detail: string, correlationId: string | undefined) => void;
  /** Before the gateway is dialled again. */
  onRetry: (code: string, detail: string, correlationId: string | undefined) => void;
  launch?: Launch;
  /** Of a shell and all that runs in it. */
  limits?: ShellLimits;
  /** How long a spare holder is kept after the last terminal. */
  keepSpareMs?: number;
  /** How long the holder of an earlier agent may take to answer. */
  answerMs?: number;
};

export type Terminals = TaskTerminals & {
  /** Takes up what an earlier agent left. */
  resume(): Promise<void>;
  count(): number;
  endAll(): Promise<void>;
  /** The shells go on. */
  stop(): void;
};

const ORPHAN_SECONDS = 600;
const LONGEST_DETACHED_MS = 24 * 3600_000;
const KEEP_SPARE_MS = 3600_000;
/** Whoever does not answer is killed with its shell: a host that stands still for some seconds must not cost one. */
const ANSWER_MS = 20_000;
/** Many terminals may look for a gateway at once. */
const REFRESH_MS = 15_000;
/** The shell that was just opened has the processor first. */
const SPARE_AFTER_MS = 500;
const DIAL_ATTEMPTS = 3;
const DIAL_AGAIN_MS = 250;

export function createTerminals(options: TerminalsOptions): Terminals {
  const { stateDir } = options;
  const directory = makeDirectory(stateDir);
  // A socket's address has room for 107 bytes, and a state directory may be deep.
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const at = (name: string) => `/proc/self/fd/${descriptor}/${name}`;
  const limits = options.limits ?? shellLimits();
  const launch = options.launch ?? launchWith(limits);
  const holders = createHolders({ directory, at, launch, orphanSeconds: ORPHAN_SECONDS });
  const dialler = createDialler(options);
  const dialGateway = createDialGateway(dialler);
  const terminals = new Map<string, Terminal>();
  const opening = new Set<string>();
  let checking: NodeJS.Timeout | undefined;
  let unused: NodeJS.Timeout | undefined;
  let noted: GatewayNote | undefined;
  let stopped = false;
  let refreshedAt = Number.NEGATIVE_INFINITY;

  const dial = async (sessionId: string, correlationId: string, signal: AbortSignal): Promise<Stream> => {
    const { set, told } = options.gateway();
    const url = set ?? told;
    if (url === undefined) {
      refresh();
      throw drift("the node's profile names no terminal gateway");
    }
    try {
      const session = { sessionId, correlationId, signal };
      const reached = await dialGateway({ url, isFixed: set !== undefined }, session);
      note({ url: reached.url, reached: true, detail: null });
      return reached.stream;
    } catch (error) {
      const failed = streamFailure(error, url);
      const astray = failed.code === "terminal_node_stream_timeout" && told !== undefined && url !== told;
      const failure = astray ? drift(elsewhere(failed.detail, told)) : failed;
      if (!signal.aborted && failure.code !== "terminal_session_unknown") notReached(url, failure.detail);
      throw failure;
    }
  };

  const notReached = (url: string, detail: string) => {
    note({ url, reached: false, detail });
    refresh();
  };
  const refresh = () => {
    if (performance.now() - refreshedAt < REFRESH_MS) return;
    refreshedAt = performance.now();
    options.refreshProfile();
  };

  /** For a person at the host; nothing depends on it. */
  const note = (now: Pick<GatewayNote, "url" | "reached" | "detail">) => {
    if (noted?.reached === now.reached && noted.url === now.url && noted.detail === now.detail) return;
    noted = { ...now, at: new Date().toISOString() };
    try {
      const path = gatewayNotePath(stateDir);
      writeFileSync(`${path}.new`, `${JSON.stringify(noted)}\n`, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch {}
  };

  const keep = (holder: Holder, about: { sessionId: string; correlationId: string; detachedMs: number }) => {
    const { sessionId, correlationId, detachedMs } = about;
    const terminal = createTerminal({
      sessionId,
      holder,
      detachedMs,
      dial: (signal) => dial(sessionId, correlationId, signal),
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

  const open = async (wanted: Opening) => {
    const { sessionId, correlationId } = wanted;
    if (terminals.has(sessionId) || opening.has(sessionId))
      throw new TaskFailed("terminal_pty_failed", "This terminal is open already.");
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), agentWaitMs(wanted.withinMs));
    const given = new AbortController();
    const signal = AbortSignal.any([wanted.signal, late.signal, given.signal]);
    opening.add(sessionId);
    const dialling = dialWithPatience({
      signal,
      dial: (again) => dial(sessionId, correlationId, again),
      onRetry: ({ code, detail }) => options.onRetry(code, detail, correlationId),
    });
    const starting = startShell(wanted, signal);
    try {
      const [stream, shell] = await Promise.all([dialling, starting]);
      const terminal = keep(shell.holder, { sessionId, correlationId, detachedMs: wanted.detachedMs });
      terminal.join(stream, shell.kept);
      const { pid, offset, private_directories, control_group } = shell.kept;
      return { pid, offset, private_directories, control_group: control_group || hasSystemd() };
    } catch (error) {
      const isLate = late.signal.aborted;
      given.abort();
      const [dialled, started] = await Promise.allSettled([dialling, starting]);
      if (dialled.status === "fulfilled") dialled.value.close();
      // A shell may take seconds to end, by which it would be too late to say why there is none.
      if (started.status === "fulfilled") void endUnused(started.value.holder);
      if (wanted.signal.aborted) throw wanted.signal.reason;
      if (isLate && dialled.status === "rejected") throw silence();
      throw explain(error, isLate);
    } finally {
      clearTimeout(timer);
      opening.delete(sessionId);
    }
  };

  const silence = () => {
    const { set, told } = options.gateway();
    const url = set ?? told ?? "";
    const detail = `${url}: the terminal gateway did not answer in time`;
    notReached(url, detail);
    return set !== undefined && told !== undefined && set !== told
      ? new TaskFailed("terminal_env_profile_drift", elsewhere(detail, told))
      : new TaskFailed("terminal_node_stream_timeout", detail);
  };

  const startShell = async (wanted: Opening, signal: AbortSignal) => {
    const taking = holders.take(wanted.sessionId);
    taking.catch(() => {}); // It is awaited below, after the user was found.
    try {
      const user = await untilAborted(wanted.user(), signal);
      const holder = await untilAborted(taking, signal);
      const kept = await untilAborted(
        holder.connection.become({
          user,
          env: shellEnvironment(user, wanted.sessionId),
          size: wanted.size,
          orphanMs: wanted.detachedMs,
          limits: { window: WINDOW_BYTES, scrollback: SCROLLBACK_BYTES, input: MOST_INPUT_BYTES },
          notes: { correlation_id: wanted.correlationId },
          confinement: await confinementOf(user, limits),
        }),
        signal,
      );
      return { holder, kept };
    } catch (error) {
      void taking.then(endUnused, () => {});
      throw error;
    }
  };

  /** It is nobody's, or half somebody's. */
  const endUnused = async (holder: Holder) => {
    const terminal = createTerminal({
      sessionId: "",
      holder,
      detachedMs: 0,
      dial: () => Promise.reject(new Error("it is ending")),
      onFailure() {},
      onRetry() {},
      onEnded: () => holders.forget(holder.name),
    });
    await terminal.end();
  };

  const takeUp = async (found: ReturnType<typeof findSockets>[number] & { kind: "shell" }) => {
    const { name, sessionId, holder: process } = found;
    try {
      if (!isAlive(process)) throw new Error("its process has ended");
      const connection = await connectToHolder(at(name), options.answerMs ?? ANSWER_MS);
      const { first } = connection;
      const { correlation_id } = (first.type === "shell" ? (first.notes ?? {}) : {}) as Record<string, unknown>;
      const correlationId =
        typeof correlation_id === "string" && correlationIdForm.test(correlation_id) ? correlation_id : "";
      const holder = { connection, process, name };
      // Taken for a session, and never told what to become.
      if (first.type === "spare") return await endUnused(holder);
      const detachedMs = Math.min(Math.max(0, first.orphanMs), LONGEST_DETACHED_MS);
      keep(holder, { sessionId, correlationId, detachedMs }).reconnect();
    } catch {
      // Stopped by its tenant, or in disorder: nobody could ever end it.
      signalIfAlive(process, "SIGKILL");
      await holders.forget(name);
    }
  };

  return {
    async open(wanted) {
      try {
        return await open(wanted);
      } catch (error) {
        // One that nobody waits for any more is no failure of this host's.
        if (error instanceof TaskFailed && error.code !== "terminal_session_unknown")
          options.onFailure(error.code, error.message, wanted.correlationId);
        throw error;
      } finally {
        setTimeout(() => holders.keepOne(), SPARE_AFTER_MS).unref();
        if (terminals.size === 0) rest();
      }
    },
    async resume() {
      await Promise.all(
        findSockets(stateDir).map((found) => {
          if (found.kind === "shell") return takeUp(found);
          return found.kind === "spare" ? holders.adopt(found.name) : holders.forget(found.name);
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
      dialler.close();
      void holders.close().then(() => closeSync(descriptor));
    },
  };
}

/** What nobody has decided yet is tried again, for a moment. */
async function dialWithPatience(options: {
  signal: AbortSignal;
  dial: (signal: AbortSignal) => Promise<Stream>;
  onRetry: (failure: StreamFailure) => void;
}): Promise<Stream> {
  const { signal } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await options.dial(signal);
    } catch (error) {
      const failure = error as StreamFailure;
      if (signal.aborted || !failure.again || attempt === DIAL_ATTEMPTS) throw error;
      options.onRetry(failure);
      await sleep(DIAL_AGAIN_MS * attempt, undefined, { signal });
    }
  }
}

function explain(error: unknown, late: boolean): Error {
  if (error instanceof TaskFailed) return error;
  if (late) return new TaskFailed("terminal_pty_failed", "The shell did not start in time.");
  if (isStreamFailure(error)) return new TaskFailed(error.code, error.detail);
  return new TaskFailed("terminal_pty_failed", error instanceof Error ? error.message : String(error));
}

function isStreamFailure(error: unknown): error is StreamFailure {
  return typeof error === "object" && error !== null && "again" in error && "code" in error;
}

function elsewhere(detail: string, told: string): string {
  return `${detail}; this host is set to that address, and the server's is ${told}`;
}

function drift(detail: string): StreamFailure {
  return { code: "terminal_env_profile_drift", detail, again: false };
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
