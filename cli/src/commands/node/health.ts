// The result of a node's last health probe, for people.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { HostHealth } from "@holdfast/contracts/node/host-health";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { ago, span } from "../../output.ts";

const MOST_LINKS = 8;

/** Empty until the first probe. */
export function describeHealth(health: NodeDetail["health"], now = Date.now()): string[] {
  if (!health) return [];
  const { host } = health;
  const rows: [string, string][] = [
    ["kernel", kernelOf(host)],
    ["load", host.load?.map((average) => average.toFixed(2)).join(" ") ?? "unknown"],
    ["memory", host.memory ? partOf(host.memory.available_bytes, host.memory.total_bytes) : "unknown"],
    ["root disk", host.root_disk ? partOf(host.root_disk.free_bytes, host.root_disk.total_bytes) : "unknown"],
    ["KVM", kvmOf(host)],
    ["VFIO", `${host.vfio_modules.join(", ") || "no module"}; ${host.iommu_groups} IOMMU groups`],
    ["GPUs", host.gpus.map(gpuOf).join(", ") || "none"],
    ["links", linksOf(host)],
    ...(host.infiniband.length > 0 ? [["fabric", fabricOf(host)] as [string, string]] : []),
  ];
  return [
    `  health, probed ${ago(health.observed_at, now)}`,
    ...rows.map(([label, value]) => `    ${label.padEnd(10)} ${value}`),
  ];
}

function kernelOf({ kernel, uptime_seconds }: HostHealth): string {
  const up = uptime_seconds === null ? "" : `, up ${span(uptime_seconds * 1000)}`;
  return `${kernel ?? "unknown"}${up}`;
}

function partOf(free: number, total: number): string {
  return `${bytesInWords(free)} of ${bytesInWords(total)} free`;
}

function kvmOf({ kvm }: HostHealth): string {
  if (!kvm.device_present) return "no device";
  return kvm.device_opens ? "available" : "present, but the agent has no access";
}

function gpuOf(gpu: HostHealth["gpus"][number]): string {
  return `${gpu.vendor ?? gpu.vendor_id} at ${gpu.address} (${gpu.driver ?? "no driver"})`;
}

/** Hardware interfaces only: a container host has hundreds of virtual ones. */
function linksOf({ links }: HostHealth): string {
  const real = links.filter((link) => link.hardware);
  const listed = real.slice(0, MOST_LINKS).map(({ name, state, speed_mbps }) => {
    return `${name} ${state}${speed_mbps === null ? "" : ` ${speed_mbps / 1000} Gb/s`}`;
  });
  const others = links.length - listed.length;
  return (
    [...listed, ...(others > 0 ? [`${others} ${real.length === 0 ? "virtual" : "more"}`] : [])].join(", ") ||
    "none"
  );
}

function fabricOf({ infiniband }: HostHealth): string {
  return infiniband
    .map(({ device, port, state, rate }) => [`${device}/${port}`, state, rate].join(" "))
    .join(", ");
}
