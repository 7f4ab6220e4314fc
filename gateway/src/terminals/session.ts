// One terminal: the client's socket and the node's, joined. What happens next is state.ts's to say; here it
// is done. Bytes pass through as they came: no copy, no parsing, no timer for any of them.

import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { TerminalEvent, TerminalGrant } from "@holdfast/contracts/service-endpoints";
import {
  type GatewayFrame,
  MOST_FRAME_BYTES,
  type NodeAway,
  type NodeFrame,
  readNodeFrame,
  type Size,
  WINDOW_BYTES,
} from "@holdfast/contracts/terminal-frames";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { Log } from "@holdfast/service/log";
import type { WebSocket } from "ws";
import { createChain } from "./chain.ts";
import type { Client } from "./client.ts";
import { errorOf, exitOf, MOST_CODE_CHARACTERS, MOST_DETAIL_CHARACTERS } from "./node-words.ts";
import { MOST_UNSENT_BYTES, pass } from "./pass.ts";
import { CLOSE_TOO_LARGE, TOO_LARGE, type Watched } from "./peer-sockets.ts";
import { arrivedClient, type Present } from "./present.ts";
import {
  type Effect,
  type Event,
  isAlone,
  needsDeadline,
  needsGrace,
  type State,
  step,
  type Why,
} from "./state.ts";
import { createTimers } from "./timers.ts";

/** A node's stream, admitted. */
export type NodeStream = { socket: WebSocket; serial: string } & Watched;

export type Session = {
  readonly id: string;
  readonly nodeId: string;
  readonly userKey: string;
  state(): State["at"];
  /** Of the stream that is there. */
  serial(): string | undefined;
  size(): Size;
  clientArrived(client: Client, grant: TerminalGrant): void;
  streamArrived(stream: NodeStream): void;
  happened(event: OutsideEvent): void;
  /** Its node's certificate ended: the agent may come back with another. */
  cutStream(): void;
};

/** What sessions are told by others than their sockets and timers. */
export type OutsideEvent = Extract<
  Event,
  { type: "task_sent" | "task_ended" | "task_failed" | "stream_refused" | "told_to_close" | "drained" }
>;

/** Bytes of PTYs. */
export type Traffic = { to_client: number; to_node: number };

export type SessionOptions = {
  grant: TerminalGrant;
  /** False: the shell is there already, as far as the api knows. */
  opens: boolean;
  tell(event: TerminalEvent): void;
  onFailure(code: TerminalFailureCode): void;
  /** Of all terminals; added to. */
  traffic: Traffic;
  onClosed(): void;
  log: Log;
};

const usual: Size = { cols: 80, rows: 24 };
const GRACE_MS = 2_000;
/** The api keeps to the same deadline, and knows better why there is no stream: its word is waited for. */
const DEADLINE_SLACK_MS = 750;
const MOST_CONTROL_BYTES = 4_096;
const closeCodes = { done: 1000, restart: 1012 };

export function createSession(options: SessionOptions): Session {
  const { grant, tell, traffic, log } = options;
  const { limits } = grant;
  const chain = createChain();
  let state: State = options.opens
    ? { at: "opening", client: false, stream: false, task: "asked" }
    : { at: "away", client: false, stream: false, informed: false };
  let present: Present | undefined;
  let older: Present | undefined;
  let stream: NodeStream | undefined;
  /** Why there is none, and since when. */
  let away: { cause: NodeAway; since: string } | undefined;
  let attachment = 0;
  let answer: Extract<NodeFrame, { type: "attached" }> | undefined;
  /** What the node sends is for the present client. */
  let flowing = false;
  let lastActive = performance.now();
  const bytes: Traffic = { to_client: 0, to_node: 0 };

  const timers = createTimers((name: "deadline" | "grace_over" | "detached_over" | "idle_over" | "time_over") => {
    const idleMs = performance.now() - lastActive;
    if (name === "idle_over" && idleMs < seconds(limits.idle_seconds)) {
      return timers.restart(name, seconds(limits.idle_seconds) - idleMs);
    }
    apply({ type: name });
  });

  const apply = (event: Event) => {
    const outcome = step(state, event);
    state = outcome.state;
    for (const effect of outcome.effects) perform(effect);
    if (state.at === "closed") return end();
    timers.keep("deadline", needsDeadline(state), seconds(grant.deadline_seconds) + DEADLINE_SLACK_MS);
    timers.keep("grace_over", needsGrace(state), GRACE_MS);
    timers.keep("detached_over", isAlone(state), seconds(limits.detached_seconds));
    timers.keep("idle_over", state.at === "attached", seconds(limits.idle_seconds));
  };

  const end = () => {
    timers.stopAll();
    leave();
    dropStream();
    if (!ended) options.onClosed();
    ended = true;
  };
  let ended = false;

  const perform = (effect: Effect) => {
    switch (effect.do) {
      case "end_older_client":
        return endOlder();
      case "greet":
        return present && chain.greet(present, effect);
      case "step":
        // The api wrote this one down itself, when it made the task.
        if (effect.step !== "terminal_open_sent") tell({ type: "step", step: effect.step, at: now() });
        return chain.reach(effect.step, present);
      case "attach":
        return attach();
      case "ready":
        return ready();
      case "inform":
        if (present?.ready && away) {
          present.awaits = true;
          present.client.send({ type: "unresponsive", ...away });
        }
        return;
      case "detach":
        flowing = false;
        return sendToNode({ type: "detach" });
      case "end_client":
        options.onFailure(effect.code);
        log.info({ ...names(), code: effect.code, detail: effect.detail }, "ended a terminal's client");
        present?.client.fail(effect.code, { detail: effect.detail, correlationId: present.grant.correlation_id });
        return;
      case "exit_client":
        present?.client.send({ type: "exit", ...effect.exit });
        return present?.client.end();
      case "end_stream":
        if (effect.shell === "ends") sendToNode({ type: "close", reason: effect.reason });
        stream?.socket.close(effect.reason === "restart" ? closeCodes.restart : closeCodes.done, effect.reason);
        return;
      case "report_detached":
        if (present?.ready) tell({ type: "detached", at: now() });
        return leave();
      case "report_failed":
        return tell({ type: "failed", ...told(effect.why), ended: effect.ended });
      case "report_closed": {
        const { code: reason, ...rest } = told(effect.why);
        log.info({ ...names(), reason }, "terminal closed");
        const sizes = { bytes_in: bytes.to_node, bytes_out: bytes.to_client };
        return tell({ type: "closed", reason, ...rest, exit: effect.exit, ...sizes });
      }
      default:
        return exhaustive(effect);
    }
  };

  /** As the client is told it. */
  const told = ({ code, detail }: Why, of = present?.grant ?? grant) => ({
    at: now(),
    code: code.slice(0, MOST_CODE_CHARACTERS),
    detail: detail?.slice(0, MOST_DETAIL_CHARACTERS) ?? null,
    correlation_id: of.correlation_id,
  });

  /** While the terminal opens, what becomes of it is the newer client's. */
  const endOlder = () => {
    if (!older) return;
    const { client, grant: own } = older;
    older = undefined;
    const why = { code: "terminal_taken_over", detail: null } as const;
    client.fail(why.code, { detail: null, correlationId: own.correlation_id });
    if (state.at !== "opening") tell({ type: "failed", ...told(why, own), ended: false });
  };

  const names = () => ({
    correlation_id: (present?.grant ?? grant).correlation_id,
    session_id: grant.session_id,
    node_id: grant.node_id,
  });

  const attach = () => {
    if (!present) return;
    const { client, grant: own, input, start, sent } = present;
    attachment += 1;
    flowing = false;
    const from = present.ready ? start + sent : own.offset;
    sendToNode({ type: "attach", attachment, from, ...input.attaching(), ...(client.size ?? usual) });
  };

  const ready = () => {
    if (!present || !answer) return;
    const { offset, replay } = answer;
    const first = !present.ready;
    const place = present.input.attached(attachment, answer.input);
    flowing = true;
    lastActive = performance.now();
    if (!first && offset === present.start + present.sent) {
      // The stream broke and came back without a gap: only input has to begin anew.
      present.before = present.sent;
      if (place.input) present.client.send({ type: "input", ...place.input });
      if (present.awaits) present.client.send({ type: "responsive" });
      present.awaits = false;
      return;
    }
    Object.assign(present, { ready: true, start: offset, sent: 0, before: 0, awaits: false });
    const output = { offset, window: WINDOW_BYTES, replay };
    present.client.send({ type: "ready", session_id: grant.session_id, ...output, ...place });
    if (first) tell({ type: "attached", at: now(), user_key: present.grant.user_key });
  };

  const sendToNode = (frame: GatewayFrame) => {
    if (stream) pass(JSON.stringify(frame), present?.client.socket ?? stream.socket, stream.socket);
  };

  /** A client with a writer's id still has it. */
  const discard = ({ writer }: Client, bytes: number) => {
    if (writer === undefined && bytes > 0) apply({ type: "overflow", bytes });
  };

  const toNode = ({ client, input }: Present, data: Buffer) => {
    if (!stream || !input.isOpen()) return discard(client, data.length);
    lastActive = performance.now();
    bytes.to_node += data.length;
    traffic.to_node += data.length;
    pass(data, client.socket, stream.socket);
    const acknowledgement = input.passed(data.length);
    if (acknowledgement) client.send(acknowledgement);
  };

  const leave = () => {
    if (present) present.client.handlers = undefined;
    present = undefined;
    flowing = false;
    // It may not have been read because of what this client did not take.
    stream?.socket.resume();
  };

  const dropStream = () => {
    const gone = stream;
    stream = undefined;
    flowing = false;
    present?.input.close();
    present?.client.socket.resume();
    return gone;
  };

  const streamLeft = ({ unresponsiveSince }: NodeStream) => {
    const silentSince = unresponsiveSince();
    const since = new Date(silentSince ?? Date.now()).toISOString();
    away = { cause: silentSince === undefined ? "disconnected" : "silent", since };
    if (silentSince !== undefined) log.warn({ ...names(), since }, "cut off a node's stream that did not answer");
    apply({ type: "stream_left" });
  };

  const onFrameOfNode = (frame: NodeFrame) => {
    switch (frame.type) {
      case "hello":
        return apply({ type: "hello" });
      case "attached":
        if (frame.attachment !== attachment) return;
        answer = frame;
        return apply({ type: "attached" });
      case "paused":
      case "ack":
        // A client that does not read even what it has needs no more of them.
        if (flowing && present && present.client.socket.bufferedAmount <= MOST_UNSENT_BYTES)
          present.client.send(frame);
        return;
      case "exit":
        return apply({ type: "exit", ...exitOf(frame) });
      case "error":
        return apply({ type: "node_error", ...errorOf(frame) });
      default:
        return exhaustive(frame);
    }
  };

  timers.restart("time_over", seconds(limits.longest_seconds));

  return {
    id: grant.session_id,
    nodeId: grant.node_id,
    userKey: grant.user_key,
    state: () => state.at,
    serial: () => stream?.serial,
    size: () => present?.client.size ?? usual,
    happened: apply,

    clientArrived(client, own) {
      older = present;
      leave();
      const arrived = arrivedClient(client, own);
      present = arrived;
      client.askedAt = Date.parse(own.asked_at);
      if (state.at !== "opening") timers.stop("deadline");
      client.handlers = {
        onBytes: (data) => toNode(arrived, data),
        onTooLarge: () => apply({ type: "too_large" }),
        onFrame(frame) {
          if (frame.type === "input") return arrived.input.answered(frame);
          if (state.at !== "attached" && state.at !== "attaching") return;
          if (frame.type === "resize") return sendToNode(frame);
          const dealtWith = Math.min(frame.bytes, arrived.sent) - arrived.before;
          if (flowing && dealtWith > 0) sendToNode({ type: "ack", bytes: dealtWith });
        },
        onLeft() {
          apply({ type: "client_left" });
          leave();
        },
      };
      apply({ type: "client_arrived" });
      discard(client, client.early);
      if (client.sentTooLarge) apply({ type: "too_large" });
      if (!client.isOpen()) client.handlers?.onLeft();
    },

    cutStream() {
      const gone = dropStream();
      if (!gone) return;
      gone.socket.terminate();
      streamLeft(gone);
    },

    streamArrived(arrived) {
      const { socket } = arrived;
      dropStream()?.socket.terminate();
      stream = arrived;
      socket.on("message", (data: Buffer, isBinary: boolean) => {
        if (stream !== arrived) return;
        if (isBinary) {
          if (!flowing || !present) return;
          lastActive = performance.now();
          present.sent += data.length;
          bytes.to_client += data.length;
          traffic.to_client += data.length;
          pass(data, socket, present.client.socket);
          return;
        }
        const frame = data.length > MOST_CONTROL_BYTES ? undefined : readNodeFrame(data.toString());
        if (frame) onFrameOfNode(frame);
      });
      socket.on(TOO_LARGE, () => {
        socket.close(CLOSE_TOO_LARGE);
        if (stream !== arrived) return;
        dropStream();
        log.warn({ ...names(), limit_bytes: MOST_FRAME_BYTES }, "a node sent a message over the limit");
        apply({ type: "node_too_large" });
      });
      socket.on("close", () => {
        if (stream !== arrived) return;
        dropStream();
        streamLeft(arrived);
      });
      apply({ type: "stream_arrived" });
    },
  };
}

const seconds = (count: number) => Math.min(count * 1000, 2 ** 31 - 1);
const now = () => new Date().toISOString();
