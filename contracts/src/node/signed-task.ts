// What a task's signature covers: made once when the task is enqueued, checked by the agent before
// anything runs. Generation and lease are facts of delivery and stand outside it.

export type SignedTask = {
  task_id: string;
  node_id: string;
  task_type: string;
  params: unknown;
  /** ISO 8601 with milliseconds, UTC: the text itself is signed. */
  expires_at: string;
};
