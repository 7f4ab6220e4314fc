// Opens a shell of an allocation's user and brings its stream to the terminal gateway. Where the gateway
// is stands in the node's profile: no address comes with a task.

import { UserName } from "@holdfast/contracts/endpoints/allocations";
import { Id } from "@holdfast/contracts/fields";
import { correlationIdForm } from "@holdfast/contracts/headers";
import { asTaskFailure } from "@holdfast/contracts/node/task-failures";
import { terminalReasons } from "@holdfast/contracts/reasons/terminal";
import { PROMISED_SECONDS, TASK_TIMEOUT_SECONDS } from "@holdfast/contracts/terminal/deadlines";
import { MOST_COLUMNS, MOST_ROWS } from "@holdfast/contracts/terminal/frames";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "terminal.open",
  summary: "Start a shell for an allocation's user and connect it to the terminal gateway",
  kind: "desired_state",
  idempotent: false,
  timeoutSeconds: TASK_TIMEOUT_SECONDS,
  expiresAfterSeconds: PROMISED_SECONDS.default,
  concurrency: 16,
  capabilities: ["os_users", "own_account"],
  byHand: false,
  resultBytes: 1024,
  params: z.strictObject({
    session_id: Id,
    allocation_id: Id,
    username: UserName,
    cols: z.int().min(1).max(MOST_COLUMNS),
    rows: z.int().min(1).max(MOST_ROWS),
    /** Of the opening: the stream carries it to the gateway. */
    correlation_id: z.string().regex(correlationIdForm),
    /** So long the gateway waits, from when the task was made; the agent gives up a little earlier and says why. */
    within_seconds: z.number().min(1).max(PROMISED_SECONDS.most).default(PROMISED_SECONDS.default),
    /** So long the shell outlives its last way to the gateway. */
    detached_seconds: z.int().min(1).max(86_400).default(600),
  }),
  progress: z.strictObject({}),
  /** Only when the shell runs and the gateway knows of it. */
  result: z.strictObject({
    /** Of the shell. */
    pid: z.int(),
    /** Output is kept from here on. */
    offset: z.int().nonnegative(),
    /** The shell has a /tmp, /var/tmp and /dev/shm of its allocation's own. */
    private_directories: z.boolean().default(false),
    /** A control group limits the processes and the memory of the allocation or of the shell. */
    control_group: z.boolean().default(false),
  }),
  failures: {
    terminal_pty_failed: asTaskFailure(terminalReasons.terminal_pty_failed),
    terminal_node_stream_timeout: asTaskFailure(terminalReasons.terminal_node_stream_timeout),
    terminal_node_stream_mtls_failed: asTaskFailure(terminalReasons.terminal_node_stream_mtls_failed),
    terminal_env_profile_drift: asTaskFailure(terminalReasons.terminal_env_profile_drift),
    terminal_relay_unavailable: asTaskFailure(terminalReasons.terminal_relay_unavailable),
    terminal_session_unknown: asTaskFailure(terminalReasons.terminal_session_unknown),
  },
});
