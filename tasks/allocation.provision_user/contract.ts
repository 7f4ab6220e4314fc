// Gives a tenant a user of their own on the host, or the agent's own account where that is all
// there is.

import { SshPublicKey, UserName } from "@holdfast/contracts/endpoints/allocations";
import { Id, Text } from "@holdfast/contracts/fields";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "allocation.provision_user",
  summary: "Make an OS user for an allocation, with exactly these SSH keys",
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
    ssh_keys: z.array(SshPublicKey).max(20).default([]),
  }),
  progress: z.strictObject({}),
  result: z.strictObject({
    username: z.string(),
    uid: z.int(),
    gid: z.int(),
    /** Kept with the allocation. */
    home: Text.max(1024),
    shell: z.string(),
    /** Made, or finished making, by this run. */
    created: z.boolean(),
    /** The user is the account that the agent runs as. */
    own_account: z.boolean(),
    /** How many SSH keys open it. */
    keys: z.int(),
  }),
  failures: {
    user_not_ours: {
      message: "A user or group of this name exists on the node, and Holdfast did not make it.",
      nextStep: "Choose another user name for the allocation.",
    },
    user_taken: {
      message: "The user of this name belongs to another allocation on this node.",
      nextStep: "Choose another user name, or release that allocation first.",
    },
    name_reserved: {
      message: "A group of this name has power over a host, and the user's group would have that name.",
      nextStep: "Choose another user name for the allocation.",
    },
    home_not_ours: {
      message: "The home directory exists already and belongs to somebody else.",
      nextStep: "Choose another user name, or look at that directory on the node.",
    },
    home_unsafe: {
      message: "Something in the user's home stands in the way of its SSH keys, such as a link in place of .ssh.",
      nextStep: "Let the user put .ssh right, then run it again.",
    },
    own_account_only: {
      message: "The agent runs without root and can offer only its own account.",
      nextStep: "Ask for that account by its name, or run the agent as root on this node.",
    },
    keys_not_supported: {
      message: "The agent runs without root: it does not change the SSH keys of its own account.",
      nextStep: "Create the allocation without SSH keys, or run the agent as root on this node.",
    },
    users_record_unusable: {
      message: "The agent's record of the users it made cannot be read or written; nothing was changed.",
      nextStep:
        "On the node, look at users.json in the agent's state directory: its owner, its disk, its content.",
    },
    no_uid_left: {
      message: "Every uid from 70000 to 79999 is in use on this node, or still owns files.",
      nextStep:
        "Release allocations on this node, or choose another one. On the node, `find / -xdev -uid +69999 -uid -80000` lists files of released users.",
    },
    account_tool_failed: {
      message: "A tool of the host for users and groups did not do its work; what was begun is undone.",
      nextStep: "Look at what it said, on the node; then run it again.",
    },
    verification_failed: {
      message: "The user was made, but is not as it should be when looked at again.",
      nextStep: "On the node, compare `getent passwd` and the home directory; then run it again.",
    },
  },
  orderKey: ({ username }) => username,
});
