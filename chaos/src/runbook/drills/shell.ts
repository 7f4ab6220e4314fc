// On the node: the allocation's user, and its shell.

import { chmodSync, copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Fault } from "../../faults/fault.ts";
import { OPEN_SECONDS } from "../../lab/gateway.ts";
import type { Lab } from "../../lab/lab.ts";
import type { Drill } from "../drill.ts";
import { agentLog, cell, gatewayLines, hop, taskOf, terminalOf, terminalOfUser, UUID } from "./cells.ts";

const common = { labName: "shell", lab: { gateway: true }, user: "terminal" } as const;

const failed = {
  user: {
    ...{ code: "terminal_pty_failed", hop: "workload_terminal_startup_failure" },
    next_step: /`holdfast allocation repair alice@node`/,
  },
  page: { hop: "workload_terminal_startup_failure", signal: "terminal_pty_failed" },
  preflight: {
    ...{ failed_hop: "workload_terminal_startup_failure", symptom_hop: null },
    ...{ signal: "terminal_pty_failed", owner: "node_runtime" },
  },
} as const;

/** As the product says: it restores whatever is missing of the user. */
async function restore({ control, allocation }: Lab): Promise<void> {
  const { code, stderr } = await control.holdfast("allocation", "repair", allocation?.id ?? "", "--json");
  if (code !== 0) throw new Error(`holdfast allocation repair: ${stderr}`);
}

const onHost =
  (what: string, ...command: [string, ...string[]]) =>
  (lab: Lab): Fault => ({
    what,
    inject: async () => void (await lab.node.host.run(...command)),
    repair: () => restore(lab),
  });

const userEvidence = {
  "M10: Node-agent PTY/user error": hop(
    "before",
    "workload_terminal_startup_failure",
    /There is no user alice on this node/,
  ),
  "M10: allocation ID": cell(new RegExp(`^${UUID}, which is the user's$`), ({ before, lab }) =>
    before.allocation_id === lab.allocation?.id ? `${before.allocation_id}, which is the user's` : "another one",
  ),
  "M10: user setup task evidence": cell(new RegExp(`^allocation.provision_user ${UUID} completed$`), (scene) =>
    taskOf(scene, scene.lab.allocation?.task_id ?? null),
  ),
};
const reachesPty = {
  "M10: terminal reaches PTY": cell(/^pty_ready at \d{4}-/, async (scene) => {
    const { chain } = await terminalOf(scene, "after");
    return `pty_ready at ${chain.pty_ready?.at}`;
  }),
};

export const userRemoved: Drill = {
  ...common,
  name: "terminal-user-removed",
  title: "the allocation's user is removed from the node",
  rows: [{ row: "M10", variant: "removed" }, { row: "L13" }],
  fault: onHost("the user is removed", "userdel", "--force", "alice"),
  expect: failed,
  before: userEvidence,
  after: reachesPty,
};

export const userRenamed: Drill = {
  ...common,
  name: "terminal-user-renamed",
  title: "the allocation's user has another name on the node",
  rows: [{ row: "M10", variant: "renamed" }],
  fault: (lab) => ({
    what: "the user is renamed",
    inject: async () => void (await lab.node.host.run("usermod", "-l", "alice-renamed", "alice")),
    // What was renamed keeps the number that the allocation needs.
    async repair() {
      await lab.node.host.run("usermod", "-l", "alice", "alice-renamed");
      await restore(lab);
    },
  }),
  expect: failed,
  before: userEvidence,
  after: reachesPty,
};

export const shellMissing: Drill = {
  ...common,
  name: "terminal-shell-missing",
  title: "the shell of the allocation's user does not exist",
  rows: [{ row: "L14" }],
  fault: onHost("the user's shell does not exist", "usermod", "-s", "/no/such/shell", "alice"),
  expect: failed,
};

/** As with a directory of users that hardly responds: until the user is known, no shell can start. */
function lookupDelayed({ node, directory }: Lab): Fault {
  const [tool, original, slow] = ["/usr/bin/getent", join(directory, "getent"), join(directory, "slow-getent")];
  return {
    what: `looking up a user on the node takes ${OPEN_SECONDS + 8} s`,
    async inject() {
      copyFileSync(tool, original);
      writeFileSync(slow, `#!/bin/sh\nsleep ${OPEN_SECONDS + 8}\nexec '${original}' "$@"\n`);
      chmodSync(slow, 0o755);
      await node.host.run("mount", "--bind", slow, tool);
    },
    // A lookup under way keeps the slow one in use.
    repair: async () => void (await node.host.run("umount", "--lazy", tool)),
  };
}

export const shellDelayed: Drill = {
  ...common,
  name: "terminal-shell-delayed",
  title: "the shell takes longer to start than the gateway waits",
  rows: [{ row: "M11" }],
  fault: lookupDelayed,
  expect: failed,
  before: {
    "M11: Gateway timeout/error frame": cell(
      /^terminal_pty_failed at workload_terminal_startup_failure; .*terminal_pty_failed/,
      async (scene) => {
        const { failure } = await terminalOfUser(scene);
        return `${failure?.code} at ${failure?.hop}; ${gatewayLines(scene.lab, scene.before.session_id)}`;
      },
    ),
    "M11: node-agent PTY timing logs": agentLog(/^terminal_failed$/, /The shell did not start in time/),
    "M11: browser-visible message": cell(/The shell did not start in time[.]/, ({ user }) => user.message),
  },
  after: {
    "M11: user receives ready frame within timeout": cell(
      new RegExp(`^passed .*: ready; within ${OPEN_SECONDS} s$`),
      async (scene) => {
        const { chain } = await terminalOf(scene, "after");
        const { take } = hop("after", "terminal_ready_frame", /./);
        const ms = Date.parse(chain.pty_ready?.at ?? "") - Date.parse(chain.browser_ws_ready?.at ?? "");
        return `${await take(scene)}; ${ms <= OPEN_SECONDS * 1000 ? "within" : "after"} ${OPEN_SECONDS} s`;
      },
    ),
  },
};
