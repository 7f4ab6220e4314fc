// Why a task did not do its work, as the agent or the task engine says it. A task type adds codes of
// its own in its contract; these belong to every type. `refused` ones never began to run.

export type FailureEntry = {
  /** What happened, to a person. */
  message: string;
  /** What to do now. */
  nextStep: string;
};

export const commonTaskFailures = {
  task_type_unknown: {
    message: "The agent does not know this type of task.",
    nextStep: "Update the agent on the node; `holdfast node show` tells its version.",
  },
  task_params_invalid: {
    message: "The parameters do not have the form that the agent's version of this type expects.",
    nextStep: "Compare the agent's version with the server's, and update the older one.",
  },
  task_signature_invalid: {
    message: "The task's signature does not match its content.",
    nextStep:
      "Treat it as tampering between server and node: look at proxies on the way, then at the server's log.",
  },
  task_key_unknown: {
    message: "The task is signed with a key that the agent was never given.",
    nextStep:
      "The agent fetches the keys with its next heartbeat; run the task again. If it stays, re-enroll the node.",
  },
  task_wrong_node: {
    message: "The task was signed for another node.",
    nextStep:
      "Treat it as tampering between server and node: look at proxies on the way, then at the server's log.",
  },
  task_expired: {
    message: "The task reached the agent after its time.",
    nextStep: "Run it again.",
  },
  clock_skew: {
    message: "The node's clock is too far from the server's to judge whether the task is still valid.",
    nextStep: "Sync the node's time first (timedatectl, chronyc), then run the task again.",
  },
  task_replayed: {
    message: "The task was offered again after its result had been accepted.",
    nextStep:
      "If the server's database was restored from a backup, this is expected; otherwise treat it as tampering.",
  },
  capability_missing: {
    message: "The node cannot run this type of task.",
    nextStep: "Choose a node that has the capability, or give it to this one; the type's description says how.",
  },
  task_timed_out: {
    message: "The task did not end within its time and was stopped.",
    nextStep: "Look at its last phase to see where it stood, then run it again.",
  },
  task_interrupted: {
    message: "The agent ended while the task ran; it is not repeated, because it may have done part of its work.",
    nextStep: "Look at the node, then decide whether to run it again.",
  },
  task_cancelled: {
    message: "The task was cancelled.",
    nextStep: "Nothing to do; run it again if it is wanted after all.",
  },
  task_not_taken: {
    message: "The node did not take the task before its time was over; nothing of it was done.",
    nextStep: "See with `holdfast node show` whether the node is connected and active, then run the task again.",
  },
  task_result_missing: {
    message: "The node took the task and did not tell its result in time; it may have done the work.",
    nextStep: "Look at the node: its agent delivers the result when it is back, and it is kept beside the task.",
  },
  result_too_large: {
    message: "The task's result is larger than a result may be.",
    nextStep: "Ask for less in its parameters; the limit is one megabyte.",
  },
  result_invalid: {
    message: "The task ended, but its result does not have the form its type promises.",
    nextStep: "Compare the agent's version with the server's, and update the older one.",
  },
  executor_failed: {
    message: "The task failed in a way its type does not foresee.",
    nextStep: "Look for the correlation id in the agent's log on the node.",
  },
} as const satisfies Record<string, FailureEntry>;

export type CommonFailure = keyof typeof commonTaskFailures;
