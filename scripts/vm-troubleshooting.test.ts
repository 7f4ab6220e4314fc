// Every line of the runbook's troubleshooting chapter is a message of the product that contains the fix. Each entry produces its messages by
// the code that operators meet, and names what has to be in them.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { errorCatalogue } from "@holdfast/contracts/errors";
import launch from "@holdfast/tasks/vm.launch/contract";
import { describe, expect, it } from "vitest";
import { toHost } from "../control-plane/src/leases/describe-host.ts";
import { type HostRow, toView } from "../control-plane/src/leases/hosts-view.ts";
import { place } from "../control-plane/src/leases/place.ts";
import { leaseReason } from "../control-plane/src/leases/reasons.ts";
import { problemOfAdvertised } from "../node-agent/src/host/advertised-address.ts";
import { findStrays } from "../node-agent/src/vms/strays.ts";
import { scratchDirectory } from "../testkit/agent/scratch.ts";
import { hostReport, IMAGE } from "../testkit/api/leases.ts";

const deploy = fileURLToPath(new URL("../deploy/", import.meta.url));
const policy = { mostPerHost: 64, mostInTotal: 100, staleAfterSeconds: 120 };
const row: HostRow = {
  ...{ node_id: "h", org_id: "o", name: "vm-1", node_status: "active", revoked: false, enabled: true, leases: 0 },
  ...{ reserved_vcpus: 0, reserved_memory_mib: 0, reserved_disk_gib: 0, heartbeat_at: new Date(), age_ms: 0 },
  ...{ disconnected_ms: null, os: null, arch: "x64", report: hostReport(), inventory_at: null, strays: null },
};
const whyNot = (changes: Partial<HostRow>) => toHost({ ...row, ...changes }, [], policy).not_schedulable ?? "";
const failure = (code: keyof typeof launch.failures) =>
  `${launch.failures[code].message} ${launch.failures[code].nextStep}`;
const error = (code: "enrollment_token_unknown" | "host_unknown" | "host_values_invalid") =>
  `${errorCatalogue[code].status} ${errorCatalogue[code].message} ${errorCatalogue[code].nextStep}`;
const explained = (changes: Partial<HostRow>, wanted: { accelerator?: "nvmm" } = {}) => {
  const vm = { id: "l", label: null, imageId: IMAGE.id, imageSha256: IMAGE.sha256, arch: null, accelerator: null };
  const size = { vcpus: 1, memoryMib: 256, diskGib: 1 };
  const situation = { ...policy, taken: { total: 0, labels: new Map() }, held: new Map() };
  const { notChosen } = place({ ...vm, ...size, ...wanted }, [toView({ ...row, ...changes }, 120)], situation);
  return notChosen[0]?.message ?? "";
};
const lease = {
  id: "l1",
  vm_id: "v1",
  host_name: "vm-1",
  image_id: "base",
  connect_seconds: 240,
  grace_seconds: 60,
  ttl_seconds: 1,
};
const strays = async () => {
  const directory = scratchDirectory();
  const tag = "0123456789ab";
  const name = `holdfast-${tag}-01a1e13c-bc3d-71c5-9b58-aada3c2346d4.qcow2`;
  writeFileSync(`${directory}/${name}`, "");
  writeFileSync(`${directory}/theirs.qcow2`, "");
  const driver = { processes: () => [], taps: async () => [] } as unknown as Parameters<
    typeof findStrays
  >[0]["driver"];
  const directories = { overlays: directory, cloudInit: `${directory}/none` };
  const found = await findStrays({ driver, directories, hostTag: tag, known: new Set(), remove: false });
  return found.map(({ name: path, action, why }) => `${path}: ${action}: ${why}`).join("\n");
};
const file = (path: string) => readFileSync(`${deploy}${path}`, "utf8");

/** The line of the runbook; what produces the messages; what they must contain. */
const lines: [string, () => string | Promise<string>, (string | RegExp)[]][] = [
  [
    "selected_accel not supported by host",
    () => `${failure("vm_accelerator_unsupported")} ${explained({}, { accelerator: "nvmm" })}`,
    ["selected_accel not supported by host", "falls back to tcg", "Request another accelerator or none"],
  ],
  [
    "Host not schedulable",
    () =>
      [
        whyNot({ age_ms: 999_999 }),
        whyNot({ enabled: false }),
        whyNot({ reserved_vcpus: 8, reserved_memory_mib: 16_384 }),
      ].join(" "),
    ["heartbeat does not reach", "enabled=false", "holdfast host enable vm-1", "cpu_free=0", "ram_free_mb=0"],
  ],
  [
    "VMs fail to launch after lease creation",
    async () =>
      [
        ...[failure("vm_image_missing"), explained({ report: hostReport({ images: [] }) })],
        ...[failure("vm_cloud_init_failed"), failure("vm_overlay_failed"), failure("vm_qemu_failed")],
        await problemOfAdvertised("vm-1:9001", { port: 9000 }),
      ].join(" "),
    [
      "NODE_AGENT_BASE_IMAGE_DIR/<base_image_id>.qcow2",
      `NODE_AGENT_BASE_IMAGE_DIR/${IMAGE.id}.qcow2 on vm-1`,
      ...["Launch stage cloud-init", "Launch stage overlay", "Launch stage qemu"],
      "NODE_AGENT_ADVERTISE_ADDR has the port 9001, and the agent listens on 9000",
    ],
  ],
  [
    "Need guest boot serial output for debugging",
    () => Object.values(leaseReason("connect_deadline", lease)).join(" "),
    ["NODE_AGENT_CLOUD_INIT_DIR/v1/serial.log on vm-1", "CD-ROM cidata"],
  ],
  ["VM launches fail on Linux", () => failure("vm_accelerator_unsupported"), ["/dev/kvm and its permissions"]],
  [
    "VM launches fail on DragonFlyBSD",
    () => failure("vm_accelerator_unsupported"),
    ["nvmm module", "`-accel nvmm`"],
  ],
  [
    "Install fails building (here: the runtime of the agent)",
    () => file("install-node-agent.sh"),
    [
      "pkg install node$NODE_MAJOR",
      "DPorts: lang/node$NODE_MAJOR",
      "NODE_AGENT_PIP_CONSTRAINT is set and ignored",
    ],
  ],
  [
    "Host register returns 422",
    () => error("host_values_invalid"),
    [/^422 /, "ram_total_mb >= 256", "agent's log"],
  ],
  [
    "Host register returns 401 or 404",
    () => `${error("enrollment_token_unknown")} ${error("host_unknown")}`,
    [
      ...[/^401 /, / 404 /, "NODE_AGENT_HOST_ID and NODE_AGENT_BOOTSTRAP_TOKEN", "holdfast host rotate-token"],
      "ALLOW_UNKNOWN_HOST_REGISTRATION=true",
    ],
  ],
  [
    "daemon: ppidfile … Permission denied",
    () => file("rc.d/jenkins_qemu_node_agent"),
    ['install -d -o "$jenkins_qemu_node_agent_user" -m 0755 "$rundir"', "pw useradd"],
  ],
  [
    "daemon: process already running, but rc.d says is not running",
    () => file("rc.d/jenkins_qemu_node_agent"),
    ['rm -f "$pidfile"', /is stale; .{1,2}service [^ ]+ start.{1,2} removes it/, "ps -o comm="],
  ],
  [
    "Orphan overlays",
    strays,
    ["would_remove: it carries this agent's tag, and no VM has it", "kept: it does not carry this agent's tag"],
  ],
];

describe("a line of the troubleshooting chapter", () => {
  it.each(lines)("VM-09 %s", async (_line, produce, contained) => {
    const text = await produce();
    for (const part of contained)
      if (typeof part === "string") expect(text).toContain(part);
      else expect(text).toMatch(part);
  });
});
