// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.defaulted(check.chain(check.number(), check.integer()), () => 0);

export default {
  type: "allocation.deprovision_user",
  summary: "End the sessions of an allocation's OS user and remove it with everything it owns on the node",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 900,
  expiresAfterSeconds: 3600,
  concurrency: 4,
  capabilities: ["os_users", "own_account"],
  byHand: false,
  resultBytes: 1024,
  failures: {
    user_not_ours: {
      message: "The user of this name on the node is not the one Holdfast made; nothing was touched.",
      nextStep: "On the node, find out who made it. The allocation can be released once that user is gone.",
    },
    home_not_ours: {
      message: "The user's home is not the directory Holdfast made, or not the user's own; it is not removed.",
      nextStep: "On the node, look at the home directory and its owner, put it right, then release again.",
    },
    home_has_mounts: {
      message: "A file system is mounted in the user's home; nothing is removed through a mount.",
      nextStep: "On the node, unmount it, then release again.",
    },
    home_unsafe: {
      message: "Something in the user's home stands in the way.",
      nextStep: "On the node, look at the home directory, then release again.",
    },
    processes_remain: {
      message: "Processes of the user do not end, not even when killed.",
      nextStep: "On the node, look at them with `ps -u`: a process that waits for a disk or network file system may need it back.",
    },
    files_remain: {
      message: "Files or IPC objects of the user are left on the node; the user itself is removed.",
      nextStep: "On the node, find them with `find / -xdev -uid` and `ipcs`, remove them, then release again. Their uid is not used again before.",
    },
    own_account_only: {
      message: "The agent runs without root and cannot remove a user.",
      nextStep: "Run the agent as root on this node, then release again.",
    },
    users_record_unusable: {
      message: "The agent's record of the users it made cannot be read or written.",
      nextStep: "On the node, look at users.json in the agent's state directory: its owner, its disk, its content.",
    },
    account_tool_failed: {
      message: "A tool of the host for users and groups did not do its work.",
      nextStep: "Look at what it said, on the node; then release again.",
    },
  },
  params: check.of(check.strictObject({
    username: check.chain(
      check.string(),
      check.pattern(
        /^[a-z][a-z0-9-]{0,30}$/,
        "1 to 31 lower-case letters, digits and hyphens, starting with a letter",
      ),
    ),
    allocation_id: check.pipe(
      check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
      check.chain(
        check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
        check.pattern(
          /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
          "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
        ),
      ),
    ),
  })),
  progress: check.of(check.strictObject({files: check.chain(check.number(), check.integer())})),
  result: check.of(check.strictObject({
    username: check.string(),
    removed: check.boolean(),
    own_account: check.boolean(),
    ended_processes: check.chain(check.number(), check.integer()),
    removed_files: shared1,
    removed_ipc: shared1,
    unseen_places: shared1,
  })),
} satisfies CheckedTaskType;
