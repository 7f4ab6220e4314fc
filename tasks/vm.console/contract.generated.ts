// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.pipe(
  check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
  check.chain(
    check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
    check.pattern(
      /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
      "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
    ),
  ),
);

export default {
  type: "vm.console",
  summary: "Connect the serial console of a VM to the terminal gateway",
  kind: "desired_state",
  idempotent: false,
  timeoutSeconds: 30,
  expiresAfterSeconds: 15,
  concurrency: 16,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 1024,
  failures: {
    terminal_vm_ended: {
      message: "The VM has ended, and its console with it.",
      nextStep: "The page of its lease says how it ended. Request another VM to go on.",
    },
    terminal_pty_failed: {
      message: "The node could not start a shell for this user.",
      nextStep: "Repair the allocation: that restores a user, shell or home that is missing on the node. If there is nothing to repair, the detail says what else is wrong.",
    },
    terminal_node_stream_timeout: {
      message: "The node took the task, but its stream did not reach the terminal gateway in time.",
      nextStep: "From the node, check DNS, route and firewall to the gateway's node-facing address, which HOLDFAST_NODE_TERMINAL_URL sets on the gateway. `holdfast task run <id> diag.network_probe` checks it from here.",
    },
    terminal_node_stream_mtls_failed: {
      message: "The node's stream reached the terminal gateway, which did not accept the node's certificate.",
      nextStep: "Check the state of its certificate on the node's page. Enroll the node again if the certificate was revoked or lost.",
    },
    terminal_env_profile_drift: {
      message: "The node connects to an address of the terminal gateway that is out of date.",
      nextStep: "Try again in a minute: the agent gets the current address with its next heartbeat. If it fails again, remove HOLDFAST_NODE_TERMINAL_URL on the host unless it is meant, and restart the agent.",
    },
    terminal_relay_unavailable: {
      message: "The node's stream reached another terminal gateway than yours, which could not pass it on.",
      nextStep: "Try again in a few seconds. If it fails again, the operator reads `/readyz` of each gateway: all of them must reach Redis (HOLDFAST_REDIS_URL) and each other (HOLDFAST_GATEWAY_RELAY_URL).",
    },
    terminal_session_unknown: {message: "The shell has ended.", nextStep: "Open a new one."},
  },
  params: check.of(check.strictObject({
    session_id: shared1,
    vm_id: shared1,
    correlation_id: check.chain(
      check.string(),
      check.pattern(
        /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/,
        "Invalid string: must match pattern /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/",
      ),
    ),
    within_seconds: check.defaulted(
      check.chain(
        check.number(),
        check.min(1, "Too small: expected number to be >=1"),
        check.max(29, "Too big: expected number to be <=29"),
      ),
      () => 15,
    ),
    detached_seconds: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(1, "Too small: expected number to be >=1"),
        check.max(86400, "Too big: expected number to be <=86400"),
      ),
      () => 600,
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({})),
} satisfies CheckedTaskType;
