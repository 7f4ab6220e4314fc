// One connection of an agent, as the gateway knows it. There may be thousands that do nothing: a session has no timer and
// no closure of its own, and what few need is made when they need it.

import type { Duplex } from "node:stream";
import type {
  CancelFrame,
  ErrorFrame,
  ExecuteFrame,
  GatewayDrainFrame,
  HelloFrame,
  ResultAckFrame,
  SignedExecuteFrame,
  WelcomeFrame,
} from "@holdfast/contracts/execution/frames";
import type { SignedKeySet } from "@holdfast/contracts/node/trust";
import { gatherWrites } from "@holdfast/kit/gather-writes";
import type { WebSocket } from "ws";

/** What is kept of `hello`; agents that say the same share it. */
export type Introduction = Pick<HelloFrame, "agentVersion" | "capabilities" | "protocolVersion">;

/** The connection is what the socket writes to. */
export type AgentConnection = { socket: WebSocket; connection: Duplex };

/** As the api admitted it. */
export type AdmittedAgent = { agentId: string; orgId: string; name: string; correlationId: string };

/** A request that was sent to the agent and has no acknowledged result. */
export type Held = {
  generation: number;
  /** When the socket is closed so that the agent connects again and repeats its results, by `Date.now()`; Infinity: never. */
  cycleAt: number;
  /** A result counts only with an exit code: the api may decide otherwise than the agent. */
  needsExitCode: boolean;
  /** The agent was requested to stop it. */
  stopping: boolean;
};

/** Reports of one agent that the api does not have yet. Results are never dropped, so beyond it the agent is not read. */
const MOST_UNSENT_REPORT_BYTES = 4 * 1024 * 1024;

/** Written to the connection and not read by the agent: beyond it, it gets no acknowledgement and is disconnected. */
const MOST_UNREAD_BYTES = 16 * 1024 * 1024;

/** Output of one request that was left out. */
export type Dropped = { generation: number; count: number; lastSeq: number };

type Sent =
  | WelcomeFrame
  | ExecuteFrame
  | SignedExecuteFrame
  | ResultAckFrame
  | CancelFrame
  | GatewayDrainFrame
  | ErrorFrame;

export class AgentSession {
  readonly id: string;
  readonly agent: AdmittedAgent;
  readonly socket: WebSocket;
  readonly #connection: Duplex;
  readonly connectedAt: number;
  /** The time of the last frame. */
  heardAt: number;
  /** Undefined until it came. */
  hello: Introduction | undefined = undefined;
  /** Of the newest set that it has or was sent. */
  keySetVersion: number | null = null;
  /** Null: the agent names none. */
  journalId: string | null = null;
  /** The api knows it. */
  isOpen = false;
  /** It is closed, or about to be: nothing is sent to it any more. */
  isClosed = false;
  /** Why this gateway closed it. */
  endedBy: string | undefined = undefined;
  isDraining = false;
  /** The api is being asked to open it. */
  isOpening = false;
  /** What the api was told meanwhile may be incomplete: it is asked once more. */
  opensAgain = false;
  held: Map<string, Held> | undefined = undefined;
  dropped: Map<string, Dropped> | undefined = undefined;
  unsentLogBytes = 0;
  /** Of all reports, output included. */
  unsentReportBytes = 0;
  /** Since the last sweep. */
  droppedBytes = 0;
  malformedFrames = 0;

  constructor(id: string, agent: AdmittedAgent, { socket, connection }: AgentConnection, now: number) {
    this.id = id;
    this.agent = agent;
    this.socket = socket;
    this.#connection = connection;
    this.connectedAt = now;
    this.heardAt = now;
  }

  /** Agents of other systems have none: they get only `pong` and `execute`. */
  get protocolVersion(): number {
    return this.hello?.protocolVersion ?? 0;
  }

  get speaksAll(): boolean {
    return this.protocolVersion > 0;
  }

  /** The api cannot take its reports as fast as they come. */
  get isBehind(): boolean {
    return this.unsentReportBytes > MOST_UNSENT_REPORT_BYTES;
  }

  send(frame: Sent): void {
    if (this.isClosed) return;
    if (frame.type !== "execute" && this.socket.bufferedAmount > MOST_UNREAD_BYTES) {
      this.#abandon();
      return;
    }
    // Requests and acknowledgements come in groups.
    gatherWrites(this.#connection);
    this.socket.send(JSON.stringify(frame));
  }

  /** It reads nothing. What it did not get it gets when it connects again. */
  #abandon(): void {
    this.isClosed = true;
    this.endedBy = "unread";
    this.socket.terminate();
  }

  hold(requestId: string, held: Held): void {
    this.held ??= new Map();
    this.held.set(requestId, held);
  }

  release(requestId: string): void {
    this.held?.delete(requestId);
    if (this.held?.size === 0) this.held = undefined;
  }

  /** Closes it; an agent that can read it learns the reason first. Frames that still arrive are ignored. */
  close(code: number, reason: string, error?: Omit<ErrorFrame, "type" | "correlationId">): void {
    if (this.isClosed) return;
    if (error && this.speaksAll) this.send({ type: "error", ...error, correlationId: this.agent.correlationId });
    this.isClosed = true;
    this.endedBy = reason;
    this.socket.close(code, reason);
    // The socket may be terminated next.
    this.#connection.uncork();
  }
}

export function newestVersion(keySets: readonly SignedKeySet[], before: number | null): number | null {
  return keySets.reduce<number | null>((newest, { version }) => Math.max(version, newest ?? 0), before);
}

/** For log lines. */
export function about({ agent, id }: AgentSession) {
  const { correlationId: correlation_id, agentId: agent_id, orgId: org_id } = agent;
  return { correlation_id, agent_id, org_id, session_id: id };
}
