// Leases as text for people.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { explainLease, getLease, Lease, LeaseLabelPolicy } from "@holdfast/contracts/endpoints/leases";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { type Column, localTime } from "../../output.ts";

export const stateOf = ({ status }: Pick<Lease, "status">) => leaseStateTitles[status].title.toLowerCase();

export const leaseRows: Column<Lease>[] = [
  { title: "id", of: (row) => row.id },
  { title: "state", of: (row) => stateOf(row) + (row.reason ? ` (${row.reason.code})` : "") },
  { title: "image", of: (row) => row.image_id },
  { title: "profile", of: (row) => row.profile },
  { title: "host", of: (row) => row.host_name },
  { title: "label", of: (row) => row.label },
  { title: "requested", of: (row) => localTime(row.created_at) },
];

export const labelRows: Column<LeaseLabelPolicy>[] = [
  { title: "label", of: (row) => row.label },
  { title: "image", of: (row) => row.image_id },
  { title: "profile", of: (row) => row.profile },
  { title: "arch", of: (row) => row.arch ?? "any" },
  { title: "accelerator", of: (row) => row.accelerator ?? "any" },
  { title: "at most", of: (row) => (row.max_leases === null ? "no limit" : String(row.max_leases)) },
];

export function describeLease(lease: AnswerOf<typeof getLease>): string {
  const rows: [string, string | null][] = [
    ["state", stateOf(lease)],
    ["host", lease.host_name],
    ["VM", lease.vm_id],
    ["image", `${lease.image_id} (${lease.image_sha256.slice(0, 12)}…)`],
    [
      "profile",
      `${lease.profile}: ${lease.vcpus} vCPU, ${bytesInWords(lease.memory_mib * 1024 * 1024)} memory, ${lease.disk_gib} GiB disk`,
    ],
    ["label", lease.label],
    ["work", lease.work],
    ["requested", `${localTime(lease.created_at)} by ${lease.created_by}`],
    ["placed", localTime(lease.placed_at)],
    ["connected", localTime(lease.connected_at)],
    ["disconnected", localTime(lease.disconnected_at)],
    ["ends", lease.finished_at ? null : localTime(lease.expires_at)],
    ["ended", localTime(lease.finished_at)],
    ["correlation", lease.correlation_id],
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [
    `Lease ${lease.id}`,
    ...shown.map(([label, value]) => `  ${label.padEnd(12)} ${value}`),
    ...(lease.reason
      ? ["", `  ${lease.reason.message} (${lease.reason.code})`, `  ${lease.reason.next_step}`]
      : []),
    ...(lease.status === "requested" ? ["", `  Why it waits: holdfast lease explain ${lease.id}`] : []),
    "",
    "  Timeline:",
    ...lease.timeline.map(({ at, event, to, message }) => {
      const became = to === null ? "no change" : leaseStateTitles[to].title.toLowerCase();
      return `    ${localTime(at)}  ${event.replaceAll("_", " ")} → ${became}${message ? `: ${message}` : ""}`;
    }),
  ].join("\n");
}

export function describeExplanation({
  lease,
  chosen,
  not_chosen,
  summary,
}: AnswerOf<typeof explainLease>): string {
  return [
    `Lease ${lease.id}: ${stateOf(lease)}. ${summary}`,
    ...(chosen ? ["", `  Chosen: ${chosen.name}. ${chosen.message}`] : []),
    ...(not_chosen.length === 0 ? [] : ["", "  Not chosen:"]),
    ...not_chosen.map(({ name, reason, message }) => `    ${name}: ${message} (${reason})`),
  ].join("\n");
}
