// Connects a terminal's stream to the gateway, at whichever address this host has for it, and records the result for
// `holdfast agent diagnose`.

import { renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { TaskFailed } from "@holdfast/tasks/executor";
import { type GatewayNote, gatewayNotePath } from "./directory.ts";
import { type StreamFailure, streamFailure } from "./failures.ts";
import { createDialGateway } from "./gateway-address.ts";
import { createDialler, type DiallerOptions, type Stream } from "./stream.ts";

export type GatewayDiallerOptions = DiallerOptions & {
  stateDir: string;
  /** Its address: as this host's setting says, or else as the profile says. */
  gateway: () => { configured: string | undefined; offered: string | undefined };
  /** The address may be outdated: requests the current profile from the server. */
  refreshProfile: () => void;
};

type Session = { sessionId: string; correlationId: string };

export type GatewayDialler = {
  /** Rejects with a StreamFailure. */
  dial(session: Session, signal: AbortSignal): Promise<Stream>;
  /** Retries briefly, until the gateway has accepted or refused it. */
  dialPatiently(session: Session, signal: AbortSignal, onRetry: (failure: StreamFailure) => void): Promise<Stream>;
  /** The failure when the gateway did not respond in time. */
  silence(): TaskFailed;
  close(): void;
};

/** Many terminals may connect at once. */
const REFRESH_MS = 15_000;
const DIAL_ATTEMPTS = 3;
const DIAL_AGAIN_MS = 250;

export function createGatewayDialler(options: GatewayDiallerOptions): GatewayDialler {
  const { stateDir } = options;
  const dialler = createDialler(options);
  const dialGateway = createDialGateway(dialler);
  let noted: GatewayNote | undefined;
  let refreshedAt = Number.NEGATIVE_INFINITY;

  const dial: GatewayDialler["dial"] = async (session, signal) => {
    const { configured, offered } = options.gateway();
    const url = configured ?? offered;
    if (url === undefined) {
      refresh();
      throw drift("the node's profile names no terminal gateway");
    }
    try {
      const reached = await dialGateway({ url, isFixed: configured !== undefined }, { ...session, signal });
      note({ url: reached.url, reached: true, detail: null });
      return reached.stream;
    } catch (error) {
      const failed = streamFailure(error, url);
      const astray = failed.code === "terminal_node_stream_timeout" && offered !== undefined && url !== offered;
      const failure = astray ? drift(elsewhere(failed.detail, offered)) : failed;
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

  /** Best effort. */
  const note = (now: Pick<GatewayNote, "url" | "reached" | "detail">) => {
    if (noted?.reached === now.reached && noted.url === now.url && noted.detail === now.detail) return;
    noted = { ...now, at: new Date().toISOString() };
    try {
      const path = gatewayNotePath(stateDir);
      writeFileSync(`${path}.new`, `${JSON.stringify(noted)}\n`, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch {}
  };

  return {
    dial,
    async dialPatiently(session, signal, onRetry) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await dial(session, signal);
        } catch (error) {
          const failure = error as StreamFailure;
          if (signal.aborted || !failure.again || attempt === DIAL_ATTEMPTS) throw error;
          onRetry(failure);
          await sleep(DIAL_AGAIN_MS * attempt, undefined, { signal });
        }
      }
    },
    silence() {
      const { configured, offered } = options.gateway();
      const url = configured ?? offered ?? "";
      const detail = `${url}: the terminal gateway did not answer in time`;
      notReached(url, detail);
      return configured !== undefined && offered !== undefined && configured !== offered
        ? new TaskFailed("terminal_env_profile_drift", elsewhere(detail, offered))
        : new TaskFailed("terminal_node_stream_timeout", detail);
    },
    close: () => dialler.close(),
  };
}

function elsewhere(detail: string, offered: string): string {
  return `${detail}; this host is set to that address, and the server's is ${offered}`;
}

function drift(detail: string): StreamFailure {
  return { code: "terminal_env_profile_drift", detail, again: false };
}
