// What happens in a run. The events of a run are its truth: its state is what follows from them, in their order.

export type Failure = { code: string; message: string };

export type NodeEvent =
  /** An attempt begins, with the values that its templates have; the first thing that is known of it. */
  | { type: "node_started"; node: string; attempt: number; input: unknown }
  /** An agent is to run it. */
  | { type: "node_dispatched"; node: string; attempt: number; requestId: string }
  /** It waits for a time, a person or an event, at most until then. */
  | { type: "node_waiting"; node: string; attempt: number; until: string | null }
  | { type: "node_succeeded"; node: string; attempt: number; output: unknown }
  | { type: "node_failed"; node: string; attempt: number; failure: Failure }
  /** The attempt failed, and another one follows. */
  | { type: "node_retried"; node: string; attempt: number; failure: Failure; notBefore: string }
  /** It will not run: no edge to it was taken, or the run ends. */
  | { type: "node_skipped"; node: string };

export type RunEvent =
  /** `version`: of the document. Runs of earlier releases have the one of their row. */
  | { type: "run_started"; input: unknown; version?: number }
  | NodeEvent
  /** Nothing new starts. */
  | { type: "run_cancel_requested" }
  | { type: "run_succeeded"; output: unknown }
  | { type: "run_failed"; failure: Failure }
  | { type: "run_cancelled" }
  /** After a failure: these nodes get another attempt, those start over, and the document may be a later version of itself. */
  | { type: "run_retried"; version: number; by: string; again: string[]; reset: string[]; removed: string[] };
