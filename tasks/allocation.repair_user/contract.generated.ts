// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

export default {
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
  failures: {
    user_not_ours: {
      message: "A user or group of this name exists on the node, and Holdfast did not create it. Nothing was changed.",
      nextStep: "On the node, rename or remove that user or group, then repair again.",
    },
    uid_taken: {
      message: "The user's uid or gid belongs to somebody else on the node. Nothing was changed.",
      nextStep: "On the node, give the other user or group another id, then repair again. Or release the allocation and create a new one.",
    },
    user_taken: {
      message: "The user of this name belongs to another allocation on this node. Nothing was changed.",
      nextStep: "Release this allocation.",
    },
    user_not_recorded: {
      message: "The agent has no record of this allocation's user, so its uid is unknown. Nothing was changed.",
      nextStep: "Restore users.json in the agent's state directory from a backup, then repair again. Or release the allocation and create a new one.",
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
      nextStep: "On the node, look at users.json in the agent's state directory: its owner, its disk, its content.",
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
    restored: check.array(check.oneOf(
      ["group", "account", "primary_group", "shell", "home"],
      "Invalid option: expected one of \"group\"|\"account\"|\"primary_group\"|\"shell\"|\"home\"",
    )),
    own_account: check.boolean(),
    keys: check.chain(check.number(), check.integer()),
  })),
} satisfies CheckedTaskType;
