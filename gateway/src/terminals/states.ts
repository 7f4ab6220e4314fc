// The states of a terminal at the gateway, what can happen to it, and what has to be done: the types of state.ts.

import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { ReadinessStep } from "@holdfast/contracts/terminal/frames";

export type State =
  /** The shell was never seen. `task`: as far as the api has confirmed it. */
  | { at: "opening"; client: boolean; stream: boolean; task: "requested" | "sent" | "ended" }
  /** The shell runs; its output was requested from the node. */
  | { at: "attaching" }
  | { at: "attached" }
  /** The shell runs without a client. */
  | { at: "detached" }
  /**
   * The shell should be running, but its stream is not connected, or has not sent hello yet. `informed`: the client was
   * ready before, knows that the node does not respond, and waits for as long as the shell may run.
   */
  | { at: "away"; client: boolean; stream: boolean; informed: boolean }
  | { at: "closed" };

export type Exit = { code: number | null; signal: string | null };
export type Why = { code: string; detail: string | null };

export type Event =
  | { type: "client_arrived" }
  | { type: "client_left" }
  | { type: "stream_arrived" }
  | { type: "stream_left" }
  | { type: "hello" }
  /** The node sends the output for the current client. */
  | { type: "attached" }
  | ({ type: "exit" } & Exit)
  | ({ type: "node_error" } & Why)
  /** A certificate of this terminal's own node was not accepted. */
  | { type: "stream_refused"; detail: string }
  /** The api has stored the task that opens it. */
  | { type: "task_sent" }
  | { type: "task_ended" }
  /** `findable`: other gateways know that the terminal is here, and pass its stream on. */
  | ({ type: "task_failed"; findable: boolean } & Why)
  | { type: "deadline"; findable: boolean }
  /** No stream came in time after the end of the task. */
  | { type: "grace_over" }
  | { type: "detached_over" }
  | { type: "idle_over" }
  | { type: "time_over" }
  | { type: "close_requested"; code: string }
  /** A client that keeps no input typed so many bytes while there was no shell to forward them to. */
  | { type: "overflow"; bytes: number }
  /** The client sent a message over the limit. */
  | { type: "too_large" }
  /** The node did; its stream is closed. */
  | { type: "node_too_large" }
  | { type: "drained" }
  /** Another gateway has the terminal now. `takenOver`: a newer client is there. */
  | { type: "moved"; takenOver: boolean };

export type Effect =
  /** The client that the newest one replaced. */
  | { do: "end_older_client" }
  | { do: "send_reached_steps"; stream: boolean; shell: boolean }
  | { do: "step"; step: ReadinessStep }
  | { do: "attach" }
  | { do: "ready" }
  | { do: "detach" }
  /** The client learns that the node's stream is down. */
  | { do: "inform_client" }
  | ({ do: "end_client" } & { code: TerminalFailureCode; detail: string | null })
  | { do: "exit_client"; exit: Exit }
  | { do: "end_stream"; shell: "ends" | "goes_on"; reason: string }
  /** Only if the api knows the client. */
  | { do: "report_detached" }
  | { do: "report_failed"; why: Why; ended: boolean }
  | { do: "report_closed"; why: Why; exit: Exit | null };

export type Outcome = { state: State; effects: Effect[] };
