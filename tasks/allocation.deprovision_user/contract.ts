// Takes a tenant's user away again: sessions, home, files elsewhere, account.

import { UserName } from "@holdfast/contracts/endpoints/allocations";
import { Id } from "@holdfast/contracts/fields";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
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
  params: z.strictObject({ username: UserName, allocation_id: Id }),
  /** While files outside of the home are removed. */
  progress: z.strictObject({ files: z.int() }),
  result: z.strictObject({
    username: z.string(),
    /** False when there was nothing to remove. */
    removed: z.boolean(),
    /** The user is the account that the agent runs as: nothing is removed. */
    own_account: z.boolean(),
    ended_processes: z.int(),
    /** Outside of the home. */
    removed_files: z.int().default(0),
    /** System V IPC objects and POSIX message queues. */
    removed_ipc: z.int().default(0),
    /** Places that could not be looked into, such as another user's FUSE mount. */
    unseen_places: z.int().default(0),
  }),
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
      nextStep:
        "On the node, look at them with `ps -u`: a process that waits for a disk or network file system may need it back.",
    },
    files_remain: {
      message: "Files or IPC objects of the user are left on the node; the user itself is removed.",
      nextStep:
        "On the node, find them with `find / -xdev -uid` and `ipcs`, remove them, then release again. Their uid is not used again before.",
    },
    own_account_only: {
      message: "The agent runs without root and cannot remove a user.",
      nextStep: "Run the agent as root on this node, then release again.",
    },
    users_record_unusable: {
      message: "The agent's record of the users it made cannot be read or written.",
      nextStep:
        "On the node, look at users.json in the agent's state directory: its owner, its disk, its content.",
    },
    account_tool_failed: {
      message: "A tool of the host for users and groups did not do its work.",
      nextStep: "Look at what it said, on the node; then release again.",
    },
  },
  orderKey: ({ username }) => username,
});
