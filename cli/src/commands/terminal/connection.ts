// One connection of this command to a shell: a token, a socket with it, and in the end the shell or the
// reason why there is none. What only a client can notice is told to the api, for the trail.

import type { Client } from "@holdfast/contracts/client";
import { createTerminalToken, reportTerminalFailure } from "@holdfast/contracts/endpoints/terminals";
import type { clientFailureCodes } from "@holdfast/contracts/reasons/terminal";
import {
  MOST_FRAME_BYTES,
  type Size,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal-frames";
import { failureSeen, TerminalFailure, withHop } from "./failure.ts";
import type { GatewayAccess } from "./gateway-access.ts";
import { GatewaySilent, type Hears, overSocket, type TerminalSocket } from "./terminal-socket.ts";

export type Connection = Omit<TerminalSocket, "opened" | "ready" | "terminate"> & {
  sessionId: string;
  /** Of the gateway. */
  url: string;
};

export type ConnectOptions = Hears & {
  client: Client;
  gateway: GatewayAccess;
  allocationId: string;
  /** A shell that is there, and how much of its output is known here. */
  resume?: { sessionId: string; offset?: number };
  size(): Size;
  /** Whether the api learns of what only this client can see. */
  isReported: boolean;
  /** Until the shell is there. */
  signal: AbortSignal;
};

type ClientFailureCode = (typeof clientFailureCodes)[number];
type Seen = { code: ClientFailureCode; detail: string };

/** Beyond what the server promises: its answer has to travel too. */
const GRACE_MS = 3_000;

/** Answers when the shell is there; what comes of it stands in `ended`. */
export async function connectTerminal(options: ConnectOptions): Promise<Connection> {
  const { client, gateway, resume, signal } = options;
  const granted = await client(createTerminalToken, {
    params: { allocation_id: options.allocationId },
    body: { session_id: resume?.sessionId, offset: resume?.offset },
    signal,
  }).catch((error: unknown) => Promise.reject(withHop(error)));
  const { url, token, session_id: sessionId, correlation_id: correlationId } = granted;
  const deadlineMs = granted.deadline_seconds * 1000 + GRACE_MS;
  const dialled = gateway.dial(url, {
    protocols: [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${token}`, `${WRITER_PROTOCOL}${options.input.writer}`],
    handshakeTimeout: deadlineMs,
    maxPayload: MOST_FRAME_BYTES,
  });
  const { opened, ready, terminate, ...connection } = overSocket(dialled, options.size, options);
  signal.addEventListener("abort", terminate, { once: true });
  try {
    await inTime({ opened, ready, deadlineMs });
    return { ...connection, sessionId, url };
  } catch (error) {
    terminate();
    if (signal.aborted || error instanceof TerminalFailure) throw error;
    const { code, detail } = await whatWasSeen(error as Error, () => gateway.answers(url));
    const report = { params: { terminal_id: sessionId }, body: { code, detail }, correlationId };
    if (options.isReported) await client(reportTerminalFailure, report).catch(() => undefined);
    throw failureSeen(code, { correlationId, detail });
  } finally {
    signal.removeEventListener("abort", terminate);
  }
}

class NotOpened extends Error {}
class Late extends Error {}

async function inTime(coming: {
  opened: Promise<void>;
  ready: Promise<unknown>;
  deadlineMs: number;
}): Promise<void> {
  const late = Promise.withResolvers<never>();
  const deadline = setTimeout(() => late.reject(new Late("no frame said how it ended")), coming.deadlineMs);
  try {
    await Promise.race([coming.opened, late.promise]).catch((error: Error) => {
      throw new NotOpened(error instanceof Late ? "the connection did not open in time" : error.message);
    });
    await Promise.race([coming.ready, late.promise]);
  } finally {
    clearTimeout(deadline);
  }
}

async function whatWasSeen(error: Error, gatewayAnswers: () => Promise<boolean>): Promise<Seen> {
  const detail = error.message;
  if (error instanceof Late || error instanceof GatewaySilent)
    return { code: "terminal_ui_connecting_stuck", detail };
  if (error instanceof NotOpened && !(await gatewayAnswers()))
    return { code: "terminal_public_route_missing", detail };
  return { code: "terminal_gateway_upgrade_failed", detail };
}
