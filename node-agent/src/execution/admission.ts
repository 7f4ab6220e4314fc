// What becomes of an `execute` frame. Pure. A request that is known here is never declined: `declined` allows another agent to
// run it, and this one has run it or is about to.

import type { TaskState } from "../journal/journal.ts";
import type { Judgement } from "./verify.ts";

export type Admission =
  | { do: "run" }
  | { do: "decline"; reason: string }
  /** It runs, or is about to: the gateway may not know. */
  | { do: "confirm" }
  | { do: "resend_result" }
  | { do: "ignore"; reason: string };

export type Situation = {
  known: TaskState;
  judgement: Judgement;
  /** The agent is about to stop. */
  draining: boolean;
  running: number;
  maxInFlight: number;
  /** Whether the journal has room for its result. */
  hasRoom: boolean;
};

export function admit({ known, judgement, draining, running, maxInFlight, hasRoom }: Situation): Admission {
  if (known !== "unknown") {
    if (!judgement.authentic) return { do: "ignore", reason: judgement.refused ?? "it is not authentic" };
    switch (known) {
      case "held":
      case "started":
        return { do: "confirm" };
      case "unsent":
        return { do: "resend_result" };
      case "settled":
        return { do: "ignore", reason: "it was run before, and its result was acknowledged" };
    }
  }
  if (judgement.refused !== undefined) return { do: "decline", reason: judgement.refused };
  if (draining) return { do: "decline", reason: "the agent is about to stop" };
  if (running >= maxInFlight) {
    return { do: "decline", reason: `the agent runs ${running} steps, and maxInFlight is ${maxInFlight}` };
  }
  if (!hasRoom) return { do: "decline", reason: "the agent's journal has no room, or its disk fails" };
  return { do: "run" };
}
