// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

export default {
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
      nextStep: "On the node, look at users.json in the agent's state directory: its owner, its disk, its content.",
    },
    no_uid_left: {
      message: "Every uid from 70000 to 79999 is in use on this node, or still owns files.",
      nextStep: "Release allocations on this node, or choose another one. On the node, `find / -xdev -uid +69999 -uid -80000` lists files of released users.",
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
    ssh_keys: check.defaulted(
      check.array(
        check.chain(
          check.string(),
          check.overwrite((input) => input.trim()),
          check.maxLength(2000, "Too big: expected string to have <=2000 characters"),
          check.pattern(
            /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [^\r\n\0]{0,200})?$/,
            "a line as in id_ed25519.pub: type, key and an optional comment",
          ),
        ),
        [[20, "Too big: expected array to have <=20 items"]],
      ),
      () => [],
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    username: check.string(),
    uid: check.chain(check.number(), check.integer()),
    gid: check.chain(check.number(), check.integer()),
    home: check.chain(
      check.string(),
      check.refine((text) => !text.includes("\0"), "must not contain a NUL character"),
      check.overwrite((input) => input.trim()),
      check.overwrite((text) => text.toWellFormed()),
      check.maxLength(1024, "Too big: expected string to have <=1024 characters"),
    ),
    shell: check.string(),
    created: check.boolean(),
    own_account: check.boolean(),
    keys: check.chain(check.number(), check.integer()),
  })),
} satisfies CheckedTaskType;
