// Connects the serial console of a VM to the terminal gateway, as terminal.open does it with a shell. Where the gateway is
// stands in the node's profile: no address comes with a task.

import { Id } from "@holdfast/contracts/fields";
import { correlationIdForm } from "@holdfast/contracts/headers";
import { asTaskFailure } from "@holdfast/contracts/node/task-failures";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { terminalReasons } from "@holdfast/contracts/reasons/terminal";
import { PROMISED_SECONDS, TASK_TIMEOUT_SECONDS } from "@holdfast/contracts/terminal/deadlines";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.console",
  summary: "Connect the serial console of a VM to the terminal gateway",
  kind: "desired_state",
  idempotent: false,
  timeoutSeconds: TASK_TIMEOUT_SECONDS,
  expiresAfterSeconds: PROMISED_SECONDS.default,
  concurrency: 16,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 1024,
  params: z.strictObject({
    session_id: Id,
    vm_id: Id,
    /** Of the opening: the stream carries it to the gateway. */
    correlation_id: z.string().regex(correlationIdForm),
    within_seconds: z.number().min(1).max(PROMISED_SECONDS.most).default(PROMISED_SECONDS.default),
    detached_seconds: z.int().min(1).max(86_400).default(600),
  }),
  progress: z.strictObject({}),
  /** Only when the gateway knows of it. */
  result: z.strictObject({}),
  failures: {
    terminal_vm_ended: asTaskFailure(terminalReasons.terminal_vm_ended),
    terminal_pty_failed: asTaskFailure(terminalReasons.terminal_pty_failed),
    terminal_node_stream_timeout: asTaskFailure(terminalReasons.terminal_node_stream_timeout),
    terminal_node_stream_mtls_failed: asTaskFailure(terminalReasons.terminal_node_stream_mtls_failed),
    terminal_env_profile_drift: asTaskFailure(terminalReasons.terminal_env_profile_drift),
    terminal_relay_unavailable: asTaskFailure(terminalReasons.terminal_relay_unavailable),
    terminal_session_unknown: asTaskFailure(terminalReasons.terminal_session_unknown),
  },
});
