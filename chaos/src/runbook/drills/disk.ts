// The node's root file system: full, so that the node cannot enroll, and filled with logs up to the limit.

import { join } from "node:path";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Fault } from "../../faults/fault.ts";
import { diskFull } from "../../faults/host.ts";
import { enrolledAgain } from "../../faults/identity.ts";
import { withoutToken } from "../../faults/recovery.ts";
import type { Lab } from "../../lab/lab.ts";
import { agentCommand } from "../../recoveries/agent-command.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { cell, heartbeat } from "./cells.ts";
import { edgeLab } from "./labs.ts";
import { isSilent, nodeOffline } from "./link.ts";

const LOGS = "/logs";

/** Of the root file system, as `df` prints it. */
const diskFree = async ({ lab }: DrillScene) => {
  const [, line = ""] = (await lab.node.host.run("df", "-h", "/")).split("\n");
  return line.split(/\s+/).slice(1).join(" ");
};

const written = ({ before }: DrillScene) => {
  const { diagnostic_path_writable, used_percent } = before.disk ?? {};
  return `diagnostic path ${diagnostic_path_writable ? "written" : "not written"}, ${Math.floor(used_percent ?? 0)} % used`;
};

const logUsage = async ({ lab }: DrillScene) =>
  (await lab.node.host.run("sh", "-c", `mkdir -p ${LOGS} && du -sm ${LOGS}`)).replace(/\s+/, " MiB in ").trim();

/** What the host finds by itself, without the server. */
const diagnosed = async ({ lab }: DrillScene) => {
  const { findings } = await lab.node.diagnose();
  return findings.map(({ reason, detail }) => `${reason}: ${detail}`).join("; ");
};

/** Of the certificate that a lab's node had before the fault. */
const serials = new WeakMap<Lab, string | undefined>();
const serialOf = async ({ control, node }: Lab) =>
  (await control.operator(getNode, { params: { node_id: node.id } })).certificate?.serial;

const recovered = {
  "M4: node-agent renews or enrolls": cell(/^enrolled$/, async ({ lab }) =>
    (await serialOf(lab)) === serials.get(lab) ? "still the old certificate" : "enrolled",
  ),
  "M4: heartbeat returns without database repair": cell(/^online, last heartbeat \d{4}-/, heartbeat),
};

/** `prepare` notes the certificate; with the repair, the node enrolls again. */
function enrollsAfter(lab: Lab, { what, inject, repair }: Fault): Fault & { prepare(): Promise<void> } {
  return {
    ...{ what, inject },
    prepare: async () => void serials.set(lab, await serialOf(lab)),
    async repair() {
      await repair();
      await enrolledAgain(lab).inject();
    },
  };
}

/** The node has lost its key, so that it has to enroll, and cannot: its disk is full. */
function fullWithoutKey(lab: Lab) {
  const full = diskFull(lab.node);
  return enrollsAfter(lab, {
    what: "the root file system is full, and the node has to enroll",
    async inject() {
      await withoutToken(lab);
      await lab.node.host.run("rm", join(lab.node.stateDir, "identity.pem"));
      await full.inject();
      lab.node.startAgent();
    },
    repair: full.repair,
  });
}

export const diskFilled: Drill = {
  ...edgeLab,
  name: "disk-full-before-enrolling",
  title: "the root file system is full, so that a node without a key cannot enroll",
  rows: [{ row: "M4", variant: "root file system" }],
  fault: fullWithoutKey,
  takesEffect: isSilent("identity_key_missing"),
  expect: {
    user: nodeOffline,
    page: { hop: "node_readiness", signal: "disk_full" },
    preflight: {
      ...{ failed_hop: "node_readiness", symptom_hop: "node_heartbeat" },
      ...{ signal: "disk_full", owner: "node_runtime" },
    },
  },
  before: {
    "M4: `df -h /`": cell(/^48M 48M 0 100% \/$/, diskFree),
    "M4: diagnostic write result": cell(/^diagnostic path not written, 100 % used$/, written),
    "M4: journald/log-buffer usage": cell(/^0 MiB in \/logs$/, logUsage),
    "M4: node-agent local diagnostic evidence": cell(/^disk_full: less than 1 MiB is free/, diagnosed),
    "enrolling is refused on the host": cell(/^disk_full: .*no space left/, enrollsInVain),
  },
  after: recovered,
};

async function enrollsInVain({ lab: { control, node } }: DrillScene): Promise<string> {
  const { token, api_url } = await control.operator(createEnrollmentToken, { body: { node_id: node.id } });
  const { refused } = await agentCommand(node, ["join", "--api", api_url, "--token", token]);
  return `${refused?.code}: ${refused?.message}`;
}

/** Of the limit of 90 %, without filling the file system. */
const FILLED_PERCENT = 94;
const fill = `
mkdir -p "$1"
set -- "$1" $(df -k --output=size,used / | tail -1)
yes "the agent's log goes here" | head -c $((($2 * ${FILLED_PERCENT} / 100 - $3) * 1024)) > "$1/agent.log"`;

export const logsFillDisk: Drill = {
  ...edgeLab,
  name: "logs-fill-disk",
  title: "logs go to a small root file system, and fill it up to the limit",
  rows: [{ row: "M4", variant: "logs" }],
  fault: (lab) =>
    enrollsAfter(lab, {
      what: "logs fill the root file system up to the limit",
      inject: async () => void (await lab.node.host.run("sh", "-c", fill, "sh", LOGS)),
      repair: async () => void (await lab.node.host.run("rm", "-rf", LOGS)),
    }),
  expect: {
    user: "served",
    page: { hop: "node_readiness", signal: "node_observability_disk_pressure" },
    preflight: {
      ...{ failed_hop: "node_readiness", symptom_hop: null },
      ...{ signal: "node_observability_disk_pressure", owner: "node_runtime" },
    },
  },
  before: {
    "M4: `df -h /`": cell(/^48M 4[56]M \d[.\d]*M 9[45]% \/$/, diskFree),
    "M4: diagnostic write result": cell(/^diagnostic path written, 9[345] % used$/, written),
    "M4: journald/log-buffer usage": cell(/^[234]\d MiB in \/logs$/, logUsage),
    "M4: node-agent local diagnostic evidence": cell(/^node_observability_disk_pressure: 9[345] % of/, diagnosed),
  },
  after: recovered,
};
