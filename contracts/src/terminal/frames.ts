// What travels through a terminal's WebSockets. Binary frames are bytes of the PTY, both ways; text
// frames are JSON and say everything else. Two sockets make one terminal:
//
//   browser or CLI  ⇄  gateway            ClientFrame up, ServerFrame down
//   gateway         ⇄  agent on the node  GatewayFrame down, NodeFrame up
//
// Flow control is one credit from the client to the PTY: at `window` bytes that were sent and not
// acknowledged the node stops reading the PTY. Nobody in between has to hold anything back, and input
// is always read, so that an acknowledgement never waits behind a paste.
//
// Input is counted by the process that holds the shell, per writer. After every attachment the client is sent the count,
// sends `input` back, and what it sends from then on begins at that byte. The gateway drops what a client sends in
// between: it belongs to an earlier attachment, and the client still has it (terminal-client/src/input.ts).
//
// No schema library here: the agent and the page read frames too.

/** The one that the server selects. */
export const TERMINAL_PROTOCOL = "holdfast.terminal.v1";
/** Offered beside it, with the token behind; never selected, echoed or logged. */
export const TOKEN_PROTOCOL = "holdfast.token.";
/** Offered too by a client that keeps its input until it is acknowledged; behind it the writer's id. */
export const WRITER_PROTOCOL = "holdfast.writer.";
const writerForm = /^[0-9a-f]{32}$/;
/** On the gateway's public listener. */
export const TERMINAL_PATH = "/v1/terminal";
/** On the gateway's node-facing listener. */
export const nodeStreamPath = (nodeId: string, sessionId: string) =>
  `/internal/v1/nodes/${nodeId}/terminals/${sessionId}`;

/** Bytes on their way to a client before the node waits for an acknowledgement. */
export const WINDOW_BYTES = 128 * 1024;
/** Bytes of input on their way to the PTY before a client waits for an acknowledgement. */
export const INPUT_WINDOW_BYTES = 128 * 1024;
/** Either side acknowledges at the latest after so many. */
export const ACKNOWLEDGE_BYTES = 32 * 1024;
/** The newest output, kept on the node for whoever attaches later. */
export const SCROLLBACK_BYTES = 256 * 1024;
/** Of one binary frame, and of input that the program has not read. */
export const MOST_FRAME_BYTES = 1024 * 1024;
export const MOST_INPUT_BYTES = 16 * 1024 * 1024;
export const MOST_COLUMNS = 1000;
export const MOST_ROWS = 500;

/** The chain that a terminal comes up by, in order. */
export const readinessSteps = [
  "token_ready",
  "browser_ws_ready",
  "terminal_open_sent",
  "node_stream_connected",
  "pty_ready",
] as const;
export type ReadinessStep = (typeof readinessSteps)[number];
/** `failed` may follow any of them, and is the last. */
export const chainSteps = [...readinessSteps, "failed"] as const;
export type ChainStep = (typeof chainSteps)[number];

export type Size = { cols: number; rows: number };

/** Why a terminal is not there, or is no more: what failed, where, whose it is, what to do. */
export type TerminalError = {
  code: string;
  hop: string;
  message: string;
  action: string;
  owner: string;
  retryable: boolean;
  correlation_id: string;
};

/** `silent`: it does not answer. `disconnected`: its connection was closed or cut. */
const nodeAway = ["silent", "disconnected"] as const;
export type NodeAway = (typeof nodeAway)[number];

/**
 * Which byte of the writer's input the shell is to get next, in this attachment. Null: nobody on the node counts, because
 * the agent or the holder of the shell is of an older version.
 */
export type InputPlace = { attachment: number; from: number | null };

export type ServerFrame =
  /** `ms` since the token was requested. */
  | { type: "status"; step: ChainStep; at: string; ms: number; correlation_id: string }
  /**
   * What follows is output from `offset` on. `replay`: so much of it was shown before, to somebody. `input` is there for
   * a client with a writer's id.
   */
  | { type: "ready"; session_id: string; offset: number; window: number; replay: number; input?: InputPlace }
  /** The node's stream broke and came back: input is to be sent from there on. */
  | ({ type: "input" } & InputPlace)
  /** How many bytes of this writer's input were written to the PTY, in all. */
  | { type: "ack"; bytes: number }
  | ({ type: "error" } & TerminalError)
  /** The shell ended. */
  | { type: "exit"; code: number | null; signal: string | null }
  /** The node's connection to the gateway is down, the client's is not. The shell may be well. */
  | { type: "unresponsive"; cause: NodeAway; since: string }
  /** The node is back, and no output was lost; otherwise there is another `ready`. */
  | { type: "responsive" }
  /** Nothing more comes until this client acknowledges. */
  | { type: "paused"; unacknowledged: number }
  | { type: "pong" };

export type ClientFrame =
  | ({ type: "resize" } & Size)
  /** How many bytes of output were dealt with since `ready`, in all. */
  | { type: "ack"; bytes: number }
  /** Input behind this frame begins at byte `from` of this writer: where the server said, unless that is null. */
  | { type: "input"; attachment: number; from: number }
  | { type: "ping" };

export type GatewayFrame =
  /**
   * A client is there: output is to come from that offset on; null: from the oldest that is kept. With a writer, input
   * behind this frame begins at the byte that `attached` names.
   */
  | ({ type: "attach"; attachment: number; from: number | null; writer?: string } & Size)
  /** It is gone; the shell goes on. */
  | { type: "detach" }
  | ({ type: "resize" } & Size)
  /** As the client said it, of its attachment. */
  | { type: "ack"; bytes: number }
  /** End the shell. */
  | { type: "close"; reason: string };

export type NodeFrame =
  /** The PTY is up. Output is kept from `offset` to `end`. */
  | { type: "hello"; offset: number; end: number }
  /** Binary frames behind this one belong to that attachment. */
  | { type: "attached"; attachment: number; offset: number; replay: number; input?: number }
  /** How many bytes of the attached writer's input were written to the PTY, in all. */
  | { type: "ack"; bytes: number }
  | { type: "paused"; unacknowledged: number }
  | { type: "exit"; code: number | null; signal: string | null }
  | { type: "error"; code: string; message: string };

/** Undefined: not a frame of this protocol. */
export function readClientFrame(text: string): ClientFrame | undefined {
  const frame = readObject(text);
  switch (frame?.["type"]) {
    case "resize":
      return withSize(frame, (size) => ({ type: "resize", ...size }));
    case "ack":
      return readAck(frame);
    case "input": {
      const { attachment, from } = frame;
      return isCount(attachment) && isCount(from) ? { type: "input", attachment, from } : undefined;
    }
    case "ping":
      return { type: "ping" };
    default:
      return undefined;
  }
}

/** Undefined also for frames of a newer server, which a client passes over. */
export function readServerFrame(text: string): ServerFrame | undefined {
  const frame = readObject(text);
  switch (frame?.["type"]) {
    case "status": {
      const { step, at, ms, correlation_id } = frame;
      const words = typeof at === "string" && typeof correlation_id === "string";
      const whole = isStep(step) && words && typeof ms === "number";
      return whole ? { type: "status", step, at, ms, correlation_id } : undefined;
    }
    case "ready": {
      const { session_id, offset, window, replay } = frame;
      const whole = typeof session_id === "string" && isCount(offset) && isCount(window) && isCount(replay);
      if (!whole) return undefined;
      const input = readInputPlace(frame["input"]);
      return { type: "ready", session_id, offset, window, replay, ...(input ? { input } : {}) };
    }
    case "input": {
      const place = readInputPlace(frame);
      return place ? { type: "input", ...place } : undefined;
    }
    case "ack":
      return readAck(frame);
    case "error":
      return readError(frame);
    case "exit":
      return readExit(frame);
    case "paused":
      return readPaused(frame);
    case "unresponsive": {
      const { since } = frame;
      const cause = nodeAway.find((one) => one === frame["cause"]);
      return cause && typeof since === "string" ? { type: "unresponsive", cause, since } : undefined;
    }
    case "responsive":
      return { type: "responsive" };
    case "pong":
      return { type: "pong" };
    default:
      return undefined;
  }
}

export function readGatewayFrame(text: string): GatewayFrame | undefined {
  const frame = readObject(text);
  switch (frame?.["type"]) {
    case "attach": {
      const { attachment, from } = frame;
      if (!isCount(attachment) || !(from === null || isCount(from))) return undefined;
      const named = isWriter(frame["writer"]) ? { writer: frame["writer"] } : {};
      return withSize(frame, (size) => ({ type: "attach", attachment, from, ...named, ...size }));
    }
    case "detach":
      return { type: "detach" };
    case "resize":
      return withSize(frame, (size) => ({ type: "resize", ...size }));
    case "ack":
      return readAck(frame);
    case "close":
      return typeof frame["reason"] === "string" ? { type: "close", reason: frame["reason"] } : undefined;
    default:
      return undefined;
  }
}

export function readNodeFrame(text: string): NodeFrame | undefined {
  const frame = readObject(text);
  switch (frame?.["type"]) {
    case "hello": {
      const { offset, end } = frame;
      return isCount(offset) && isCount(end) ? { type: "hello", offset, end } : undefined;
    }
    case "attached": {
      const { attachment, offset, replay, input } = frame;
      const whole = isCount(attachment) && isCount(offset) && isCount(replay);
      if (!whole) return undefined;
      return { type: "attached", attachment, offset, replay, ...(isCount(input) ? { input } : {}) };
    }
    case "ack":
      return readAck(frame);
    case "paused":
      return readPaused(frame);
    case "exit":
      return readExit(frame);
    case "error": {
      const { code, message } = frame;
      return typeof code === "string" && typeof message === "string"
        ? { type: "error", code, message }
        : undefined;
    }
    default:
      return undefined;
  }
}

type Frame<Type extends ServerFrame["type"]> = Extract<ServerFrame, { type: Type }>;

function readError(frame: Record<string, unknown>): Frame<"error"> | undefined {
  const { code, hop, message, action, owner, retryable, correlation_id } = frame;
  const words = { code, hop, message, action, owner, correlation_id };
  const whole = Object.values(words).every((word) => typeof word === "string") && typeof retryable === "boolean";
  return whole ? { type: "error", ...(words as Record<keyof typeof words, string>), retryable } : undefined;
}

function readInputPlace(value: unknown): InputPlace | undefined {
  const { attachment, from } = (value ?? {}) as Record<string, unknown>;
  const whole = isCount(attachment) && (from === null || isCount(from));
  return whole ? { attachment, from } : undefined;
}

function readAck({ bytes }: Record<string, unknown>): Frame<"ack"> | undefined {
  return isCount(bytes) ? { type: "ack", bytes } : undefined;
}

export function isWriter(value: unknown): value is string {
  return typeof value === "string" && writerForm.test(value);
}

function readPaused({ unacknowledged }: Record<string, unknown>): Frame<"paused"> | undefined {
  return isCount(unacknowledged) ? { type: "paused", unacknowledged } : undefined;
}

function isStep(value: unknown): value is ChainStep {
  return chainSteps.some((step) => step === value);
}

function readExit({ code, signal }: Record<string, unknown>): Frame<"exit"> | undefined {
  const right = (code === null || Number.isInteger(code)) && (signal === null || typeof signal === "string");
  return right ? { type: "exit", code: code as number | null, signal } : undefined;
}

function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function withSize<T>({ cols, rows }: Record<string, unknown>, make: (size: Size) => T): T | undefined {
  if (!isCount(cols) || !isCount(rows) || cols < 1 || rows < 1) return undefined;
  return make({ cols: Math.min(cols, MOST_COLUMNS), rows: Math.min(rows, MOST_ROWS) });
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
