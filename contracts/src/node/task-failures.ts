// Why a task failed, as the agent or the task engine reports it. A task type adds codes of its own in its contract;
// these belong to every type. A failure that is also a reason has the words of the catalogue of reasons.

import { hostReasons } from "../reasons/node/host.ts";
import type { ReasonFacts } from "../reasons/vocabulary.ts";

export type FailureEntry = {
  /** What happened, to a person. */
  message: string;
  /** What to do now. */
  nextStep: string;
};

export const asTaskFailure = ({ message, nextStep }: ReasonFacts): FailureEntry => ({ message, nextStep });

export const commonTaskFailures = {
  task_type_unknown: {
    message: "The agent does not support this task type.",
    nextStep: "Update the agent on the node. `holdfast node show` prints its version.",
  },
  task_params_invalid: {
    message: "The parameters are not valid for the agent's version of this task type.",
    nextStep: "Compare the agent's version with the server's, and update the older one.",
  },
  task_secrets_missing: {
    message: "The task arrived without a secret that its type needs.",
    nextStep:
      "Run it again. If it fails again, check the server's log for secrets that could not be opened, and the KEK in its settings.",
  },
  task_signature_invalid: {
    message: "The task's signature does not match its content.",
    nextStep:
      "Treat it as tampering between server and node: check the proxies between them, then the server's log.",
  },
  task_key_unknown: {
    message: "The task is signed with a key that the agent has never received.",
    nextStep:
      "The agent fetches the keys with its next heartbeat; run the task again. If it fails again, enroll the node again.",
  },
  task_wrong_node: {
    message: "The task was signed for another node.",
    nextStep:
      "Treat it as tampering between server and node: check the proxies between them, then the server's log.",
  },
  task_expired: {
    message: "The task had expired when it reached the agent.",
    nextStep: "Run it again.",
  },
  clock_skew: asTaskFailure(hostReasons.clock_skew),
  task_replayed: {
    message: "The task was offered again after its result had been accepted.",
    nextStep:
      "If the server's database was restored from a backup, this is expected; otherwise treat it as tampering.",
  },
  capability_missing: {
    message: "The node cannot run this type of task.",
    nextStep:
      "Choose a node that has the capability, or add it to this one as the description of the task type says.",
  },
  task_timed_out: {
    message: "The task exceeded its time limit and was stopped.",
    nextStep: "Check its last phase to see how far it got, then run it again.",
  },
  task_interrupted: {
    message:
      "The agent stopped while the task was running. The task is not repeated, because it may have done part of its work.",
    nextStep: "Check the node, then decide whether to run the task again.",
  },
  task_cancelled: {
    message: "The task was cancelled.",
    nextStep: "Nothing to do. Run it again if it is still needed.",
  },
  task_not_taken: {
    message: "The node did not claim the task before it expired. Nothing was done.",
    nextStep: "Check with `holdfast node show` that the node is online and active, then run the task again.",
  },
  task_result_missing: {
    message: "The node claimed the task and did not report its result in time. It may have done the work.",
    nextStep:
      "Check the node. Its agent delivers the result when it is online again, and the result is kept with the task.",
  },
  result_too_large: {
    message: "The task's result is too large.",
    nextStep: "Request less in its parameters. The limit is 1 MiB.",
  },
  result_invalid: {
    message: "The task ended, but its result is not valid for its type.",
    nextStep: "Compare the agent's version with the server's, and update the older one.",
  },
  executor_failed: {
    message: "The task failed with an unexpected error.",
    nextStep: "Look for the correlation id in the agent's log on the node.",
  },
} as const satisfies Record<string, FailureEntry>;

export type CommonFailure = keyof typeof commonTaskFailures;
