// Restores an allocation's OS user that was deleted or damaged on the node, with the uid it had.

import { SshPublicKey, UserName } from "@holdfast/contracts/endpoints/allocations";
import { Id, Text } from "@holdfast/contracts/fields";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "allocation.repair_user",
  summary: "Check an allocation's OS user and restore what is missing, without changing what is in its home",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 120,
  expiresAfterSeconds: 600,
  concurrency: 4,
  capabilities: ["os_users", "own_account"],
  byHand: false,
  resultBytes: 2048,
  params: z.strictObject({
    username: UserName,
    allocation_id: Id,
    /** Written only into a home that is created. */
    ssh_keys: z.array(SshPublicKey).max(20).default([]),
  }),
  progress: z.strictObject({}),
  result: z.strictObject({
    username: z.string(),
    uid: z.int(),
    gid: z.int(),
    home: Text.max(1024),
    shell: z.string(),
    /** What this run restored; empty: everything that was checked was there. */
    restored: z.array(z.enum(["group", "account", "primary_group", "shell", "home"])),
    /** The user is the account that the agent runs as: nothing is restored. */
    own_account: z.boolean(),
    /** How many SSH keys were written into a new home. */
    keys: z.int(),
  }),
  failures: {
    user_not_ours: {
      message:
        "A user or group of this name exists on the node, and Holdfast did not create it. Nothing was changed.",
      nextStep: "On the node, rename or remove that user or group, then repair again.",
    },
    uid_taken: {
      message: "The user's uid or gid belongs to somebody else on the node. Nothing was changed.",
      nextStep:
        "On the node, give the other user or group another id, then repair again. Or release the allocation and create a new one.",
    },
    user_taken: {
      message: "The user of this name belongs to another allocation on this node. Nothing was changed.",
      nextStep: "Release this allocation.",
    },
    user_not_recorded: {
      message: "The agent has no record of this allocation's user, so its uid is unknown. Nothing was changed.",
      nextStep:
        "Restore users.json in the agent's state directory from a backup, then repair again. Or release the allocation and create a new one.",
    },
    user_unfinished: {
      message: "The user is still being created or removed on the node. Nothing was changed.",
      nextStep: "Wait until that is done. If a release failed, release the allocation again.",
    },
    home_not_ours: {
      message: "The home directory belongs to somebody else, or the user has another one. Nothing was changed.",
      nextStep: "On the node, correct the owner of the directory or the account's home, then repair again.",
    },
    home_unsafe: {
      message: "Something in the new home directory is not a plain file or directory.",
      nextStep: "On the node, look at /etc/skel, then repair again.",
    },
    own_account_only: {
      message: "The agent runs without root and cannot restore a user.",
      nextStep: "Run the agent as root on this node, then repair again.",
    },
    users_record_unusable: {
      message: "The agent's record of the users it created cannot be read. Nothing was changed.",
      nextStep:
        "On the node, look at users.json in the agent's state directory: its owner, its disk, its content.",
    },
    account_tool_failed: {
      message: "A tool of the host for users and groups failed.",
      nextStep: "Look at its message, correct the cause on the node, then repair again.",
    },
    verification_failed: {
      message: "The user was repaired, but a second look found it incomplete.",
      nextStep: "On the node, compare `getent passwd` and the home directory, then repair again.",
    },
  },
  orderKey: ({ username }) => username,
});
