// How nodes are shown to people.

import type { Node, NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { placeText } from "@holdfast/contracts/reasons/hops";
import { ago, gigabytes, localTime, table } from "../../output.ts";
import { describeHealth } from "./health.ts";

const marks = { online: "● online", stale: "■ offline", never: "○ never seen" };

export function nodeTable(nodes: readonly Node[], options: { filtered: boolean }): string {
  if (nodes.length === 0) {
    return options.filtered
      ? "No node matches."
      : "No nodes yet. `holdfast node token create` tells how a machine becomes one.";
  }
  return table(nodes, [
    { title: "name", of: (row) => row.name },
    { title: "status", of: (row) => row.status },
    { title: "connection", of: (row) => (row.status === "retired" ? null : marks[row.connection]) },
    { title: "last heartbeat", of: (row) => ago(row.heartbeat_at) },
    { title: "agent", of: (row) => row.agent_version },
    { title: "system", of: (row) => (row.os ? `${row.os} ${row.arch ?? ""}` : null) },
    { title: "running", of: (row) => String(row.running_tasks) },
    { title: "attention", of: (row) => row.attention.map(({ title, code }) => `${title} (${code})`).join(", ") },
    { title: "id", of: (row) => row.id },
  ]);
}

export function describeNode(node: NodeDetail): string {
  const { facts, certificate } = node;
  const rows: [string, string | null][] = [
    ["id", node.id],
    ["status", node.status + (node.status_reason ? ` (${node.status_reason})` : "")],
    ["connection", `${marks[node.connection]}, heard ${ago(node.heartbeat_at)}`],
    ["agent", node.agent_version && `${node.agent_version}, started ${ago(node.agent_started_at)}`],
    ["system", node.os && `${node.os} ${node.arch ?? ""}${facts ? `, kernel ${facts.os.kernel}` : ""}`],
    ["machine", facts && `${facts.cpus} CPUs, ${gigabytes(facts.memory_bytes)} memory, ${diskOf(facts.disk)}`],
    [
      "accelerators",
      facts && (facts.accelerators.map((one) => `${one.vendor} ${one.model}`).join(", ") || "none"),
    ],
    ["account", facts?.account ?? null],
    ["capabilities", node.capabilities.join(", ") || "none beyond the ordinary"],
    [
      "clock",
      node.clock_skew_seconds === null ? null : `${node.clock_skew_seconds.toFixed(1)} s ahead of the server`,
    ],
    ["tasks", `${node.running_tasks} running, ${node.unsent_results ?? 0} results not delivered yet`],
    ["certificate", certificate && `until ${localTime(certificate.not_after)}, serial ${certificate.serial}`],
    ["renewal", certificate && (localTime(certificate.renewal_due_at) ?? null)],
    ["profile", node.profile && `${node.profile.name} version ${node.profile.version}`],
    ["enrolled", localTime(node.created_at)],
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [
    node.name,
    ...shown.map(([label, value]) => `  ${label.padEnd(12)} ${value}`),
    ...describeHealth(node.health),
    ...node.attention.flatMap(
      ({ code, title, severity, message, next_step, runbook, correlation_id, ...place }) => [
        "",
        `  ! ${title}: ${message}`,
        `    ${[code, severity, place.hop && `at ${placeText(place)}`].filter(Boolean).join(", ")}`,
        `    ${next_step.replaceAll("<id>", node.name)}`,
        ...(runbook ? [`    runbook ${runbook}`] : []),
        ...(correlation_id ? [`    correlation id ${correlation_id}`] : []),
      ],
    ),
  ].join("\n");
}

function diskOf(disk: { total_bytes: number; free_bytes: number }): string {
  return `${gigabytes(disk.free_bytes)} of ${gigabytes(disk.total_bytes)} disk free`;
}
