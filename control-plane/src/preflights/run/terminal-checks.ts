// Checks of the way from a browser to a shell. One terminal is opened for all of them, and closed at the end; each check reads
// from its chain of steps and its outcome what concerns its hop.

import http from "node:http";
import https from "node:https";
import { CallError } from "@holdfast/contracts/call-error";
import { closeTerminal, createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { pageKind } from "@holdfast/contracts/preflight/page-kind";
import { LIVE_PATH } from "@holdfast/contracts/public/live";
import {
  isTerminalFailure,
  type TerminalFailureCode,
  terminalFailures,
} from "@holdfast/contracts/reasons/terminal";
import { TERMINAL_PATH, type TerminalError } from "@holdfast/contracts/terminal/frames";
import { type Check, type Checked, type Found, failed, type Means, passed, unknown } from "./means.ts";
import { isServerAway, nodeTerminal, wordsOf } from "./node-checks.ts";
import { dial, type Refused, readText, terminalProtocols } from "./web-socket.ts";

export const tokenMint: Check = async ({ client, allocationId, correlationId }, found, signal) => {
  try {
    const params = { allocation_id: allocationId ?? "" };
    found.token = await client(createTerminalToken, { params, body: {}, correlationId, signal });
    return passed("control_plane", `for terminal ${found.token.session_id}`);
  } catch (error) {
    const detail = wordsOf(error);
    if (isServerAway(error) && !isGatewayMissing(error))
      return failed("control_plane", "control_plane_unreachable", detail);
    const code = isGatewayMissing(error) ? "terminal_gateway_upgrade_failed" : "terminal_token_mint_failed";
    return failed("control_plane", code, detail);
  }
};

const isGatewayMissing = (error: unknown) =>
  error instanceof CallError && error.envelope.code === "terminal_gateway_missing";

/** The gateway's public address: the one that was given, else the one that clients are given. */
function terminalBase({ terminalUrl }: Means, { token }: Found): URL | null {
  return URL.parse(terminalUrl ?? token?.url ?? "");
}

function httpUrl(base: URL, path: string): URL {
  const scheme = base.protocol === "wss:" || base.protocol === "https:" ? "https:" : "http:";
  return new URL(path, `${scheme}//${base.host}`);
}

const NO_EDGE = "an identity-aware proxy asks to sign in: no browser-equivalent proof without edge authentication";

/** `/healthz` and not `/`, for which an edge may have a page of its own. */
export const publicRoute: Check = async (means, found, signal) => {
  const base = terminalBase(means, found);
  if (!base) return failed(means.vantage, "terminal_public_route_missing", "the gateway has no address");
  const url = httpUrl(base, "/healthz");
  try {
    const { status, text, listener, location } = await fetchText(url, means, signal);
    if (status === 200 && listener === gatewayListeners.public) return passed(means.vantage, `${url} answers 200`);
    const page = pageKind({ status, text, location });
    if (page === "login") return unknown(`${url}: ${NO_EDGE}`);
    if (page === "rate_limit") return failed(means.vantage, "edge_rate_limited", `${url} answers ${status}`);
    const what = status === 200 ? "200, but it is not the gateway" : String(status);
    return failed(means.vantage, "terminal_public_route_missing", `${url} answers ${what}`);
  } catch (error) {
    return failed(means.vantage, "terminal_public_route_missing", `${url}: ${wordsOf(error)}`);
  }
};

type Fetched = { status: number; text: string; listener: string | undefined; location: string | undefined };

/** Without following redirects: where a proxy sends a browser is what is of interest. */
function fetchText(url: URL, { tls, smoke }: Means, signal: AbortSignal): Promise<Fetched> {
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const asking = request(url, { ...tls, headers: smoke?.headers ?? {}, signal, agent: false });
    asking.once("error", reject);
    asking.once("response", (response) => {
      const { statusCode: status = 0, headers } = response;
      const listener = headers[LISTENER_HEADER];
      void readText(response).then((text) =>
        resolve({
          ...{ status, text, location: headers.location },
          listener: typeof listener === "string" ? listener : undefined,
        }),
      );
    });
    asking.end();
  });
}

export const browserSocket: Check = async (means, found, signal) => {
  const { vantage, smoke } = means;
  const base = terminalBase(means, found);
  if (!base || !found.token) return unknown("no token was issued");
  const url = httpUrl(base, TERMINAL_PATH).href.replace(/^http/, "ws");
  const headers = { ...(smoke?.origin ? { origin: smoke.origin } : {}), ...smoke?.headers };
  const protocols = terminalProtocols(found.token.token);
  const socket = await dial(url, { headers, protocols, tls: means.tls, signal });
  found.socket = socket;
  if (socket.refused) return refusedSocket(means, socket.refused, url);
  await socket.answered(signal);
  if (socket.chain.size === 0) {
    const error = await outcomeOf(found, AbortSignal.abort());
    if (isError(error) && hopOf(error) === "browser_terminal_ws")
      return failed("gateway", codeOf(error), error.message);
    if (!error)
      return failed(
        vantage,
        "terminal_gateway_upgrade_failed",
        `${url}: ${socket.closed() ?? "open, but silent"}`,
      );
  }
  if (!smoke) return passed(vantage, `${url} is open`);
  const notifications = await liveSocket(means, signal);
  if (notifications) return notifications;
  found.smokePassed = true;
  return passed(vantage, `${url} and the notification WebSocket respond`);
};

function refusedSocket({ vantage }: Means, { page, detail, code }: Refused, url: string): Checked {
  if (page === "login") return unknown(`${url}: ${NO_EDGE}`);
  if (page === "rate_limit" || code === "rate_limit_exceeded")
    return failed(vantage, "edge_rate_limited", `${url}: ${detail}`);
  return failed(vantage, "terminal_gateway_upgrade_failed", `${url}: ${detail}`);
}

/** Undefined: it opens, or the api itself refuses it, for want of a session. */
async function liveSocket(means: Means, signal: AbortSignal): Promise<Checked | undefined> {
  const { apiUrl, smoke, tls } = means;
  if (apiUrl === null || !smoke) return undefined;
  const url = new URL(LIVE_PATH, apiUrl).href.replace(/^http/, "ws");
  const headers = { ...smoke.headers, origin: new URL(apiUrl).origin };
  const socket = await dial(url, { headers, protocols: [], tls, signal });
  socket.close();
  const { refused } = socket;
  const byApi = refused?.code !== null && refused?.status !== null;
  return refused && !byApi ? refusedSocket(means, refused, url) : undefined;
}

const outcomeOf = async ({ socket }: Found, signal: AbortSignal) => socket?.outcome(signal);
const isError = (outcome: "ready" | TerminalError | undefined): outcome is TerminalError =>
  outcome !== undefined && outcome !== "ready";
const codeOf = ({ code }: TerminalError): TerminalFailureCode =>
  isTerminalFailure(code) ? code : "terminal_stream_lost";
const hopOf = (error: TerminalError) => terminalFailures[codeOf(error)].hop;

const NO_TERMINAL = "no terminal was opened";
/** These end the task of the node, or keep it from being taken. */
const ofTask: ReadonlySet<string> = new Set(["terminal_open_task", "node_heartbeat"]);

export const openTask: Check = async (_means, found, signal) => {
  if (!found.socket || found.socket.refused) return unknown(NO_TERMINAL);
  const outcome = await outcomeOf(found, signal);
  if (isError(outcome) && ofTask.has(hopOf(outcome))) return failed("gateway", codeOf(outcome), outcome.message);
  // The gateway took the WebSocket and found out only later that it cannot serve it.
  if (isError(outcome) && hopOf(outcome) === "browser_terminal_ws")
    return {
      ...unknown(outcome.message),
      corrects: { hop: "browser_terminal_ws", by: failed("gateway", codeOf(outcome), outcome.message) },
    };
  if (outcome === "ready") return passed("gateway", "the node took terminal.open and completed it");
  if (found.socket.chain.has("terminal_open_sent")) return passed("gateway", "terminal.open was sent to the node");
  return unknown(isError(outcome) ? outcome.message : "the gateway did not report the task");
};

/** Without a probe, what the gateway saw of the node's stream. */
export const nodeTerminalReach: Check = async (means, found, signal) => {
  const checked = await nodeTerminal(means, found, signal);
  const outcome = await outcomeOf(found, AbortSignal.abort());
  if (isError(outcome) && isRefusedThere(checked, codeOf(outcome)))
    return passed("node", `the listener was reached and refused the certificate: ${checked.detail}`);
  const sameHop = isError(outcome) && hopOf(outcome) === "node_terminal_reachability";
  if (!sameHop || checked.outcome.status === "failed") return checked;
  // A probe that passes does not excuse what an agent found out about its own address.
  const isDrift = codeOf(outcome) === "terminal_env_profile_drift";
  if (checked.outcome.status === "passed" && !isDrift) return checked;
  return failed("gateway", codeOf(outcome), outcome.message);
};

/** The gateway says so itself, at the hop of its own. */
function isRefusedThere({ outcome }: Checked, code: TerminalFailureCode): boolean {
  return code === "terminal_node_stream_mtls_failed" && outcome.status === "failed" && outcome.code === code;
}

export const nodeStream: Check = async (_means, found, signal) => {
  if (!found.socket || found.socket.refused) return unknown(NO_TERMINAL);
  const outcome = await outcomeOf(found, signal);
  const session = `terminal ${found.token?.session_id}`;
  if (outcome === "ready" || found.socket.chain.has("node_stream_connected"))
    return passed("gateway", `the node's stream of ${session} arrived`);
  if (!isError(outcome)) return unknown("the gateway did not report the node's stream");
  const absent = hopOf(outcome) === "node_terminal_reachability" || hopOf(outcome) === "gateway_node_stream";
  return absent ? failed("gateway", codeOf(outcome), outcome.message) : unknown(outcome.message);
};

export const readyFrame: Check = async ({ vantage }, found, signal) => {
  if (!found.socket || found.socket.refused) return unknown(NO_TERMINAL);
  const outcome = await outcomeOf(found, signal);
  if (outcome === "ready") return passed(vantage, "ready");
  if (outcome) return passed(vantage, `error frame ${outcome.code}`);
  return failed(vantage, "terminal_ui_connecting_stuck", found.socket.closed() ?? "neither ready nor an error");
};

export const shellStarts: Check = async ({ vantage }, found, signal) => {
  if (!found.socket || found.socket.refused) return unknown(NO_TERMINAL);
  const outcome = await outcomeOf(found, signal);
  if (outcome === "ready") return passed(vantage, "the shell is ready");
  return isError(outcome) ? failed("gateway", codeOf(outcome), outcome.message) : unknown(NO_TERMINAL);
};

/** The shell that was opened for the checks. */
export async function leaveNothing({ client, correlationId }: Means, found: Found): Promise<void> {
  found.socket?.close();
  if (!found.token) return;
  const params = { terminal_id: found.token.session_id };
  await client(closeTerminal, { params, correlationId, signal: AbortSignal.timeout(3_000) }).catch(
    () => undefined,
  );
}
