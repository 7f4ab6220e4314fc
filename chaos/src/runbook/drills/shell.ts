// On the node: the allocation's user, and its shell.

import type { Fault } from "../../faults/fault.ts";
import type { Lab } from "../../lab/lab.ts";
import type { Drill } from "../drill.ts";
import { cell, hop, taskOf, terminalOf, UUID } from "./cells.ts";

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
