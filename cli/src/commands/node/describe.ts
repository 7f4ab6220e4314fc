// Nodes as text for people.

import type { Node, NodeConnection, NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { placeText } from "@holdfast/contracts/reasons/hops";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { nodeConnectionTitles, nodeLinkTitles } from "@holdfast/contracts/words/state-titles";
import { ago, localTime, table } from "../../output.ts";
import { describeHealth } from "./health.ts";

const shapes: Record<NodeConnection, string> = { online: "●", stale: "◐", offline: "■", never: "○" };

function connectionOf({ connection }: Pick<Node, "connection">): string {
  return `${shapes[connection]} ${nodeConnectionTitles[connection].title.toLowerCase()}`;
}

export function nodeTable(nodes: readonly Node[], options: { filtered: boolean }): string {
  if (nodes.length === 0) {
    return options.filtered ? "No node matches." : "No nodes yet. Add one: holdfast node token create";
  }
  return table(nodes, [
    { title: "name", of: (row) => row.name },
    { title: "status", of: (row) => row.status },
    { title: "connection", of: (row) => (row.status === "retired" ? null : connectionOf(row)) },
    { title: "last heartbeat", of: (row) => ago(row.heartbeat_at) },
    { title: "agent", of: (row) => row.agent_version },
    { title: "system", of: (row) => (row.os ? `${row.os} ${row.arch ?? ""}` : null) },
    { title: "running", of: (row) => (row.running_tasks === null ? null : String(row.running_tasks)) },
    { title: "attention", of: (row) => row.attention.map(({ title, code }) => `${title} (${code})`).join(", ") },
    { title: "id", of: (row) => row.id },
  ]);
}

/** `url`: of the server, which serves the runbooks, too. */
export function describeNode(node: NodeDetail, { url }: { url: string }): string {
  const { facts, certificate, setup } = node;
  const rows: [string, string | null][] = [
    ["id", node.id],
    ["status", node.status + (node.status_reason ? ` (${node.status_reason})` : "")],
    ["connection", `${connectionOf(node)}, last heartbeat ${ago(node.heartbeat_at)}`],
    ["link", linkOf(node)],
    [
      "agent",
      node.agent_version &&
        node.agent_version + (node.agent_started_at ? `, started ${ago(node.agent_started_at)}` : ""),
    ],
    ["system", node.os && `${node.os} ${node.arch ?? ""}${facts ? `, kernel ${facts.os.kernel}` : ""}`],
    ["machine", facts && `${facts.cpus} CPUs, ${bytesInWords(facts.memory_bytes)} memory, ${diskOf(facts.disk)}`],
    [
      "accelerators",
      facts && (facts.accelerators.map((one) => `${one.vendor} ${one.model}`).join(", ") || "none"),
    ],
    ["account", facts?.account ?? null],
    ["capabilities", node.capabilities.join(", ") || "none"],
    ["clock", node.clock_skew_seconds === null ? null : clockOf(node.clock_skew_seconds)],
    [
      "tasks",
      node.running_tasks === null
        ? null
        : `${node.running_tasks} running, ${node.unsent_results ?? 0} results not delivered`,
    ],
    ["certificate", certificate && `expires ${localTime(certificate.not_after)}, serial ${certificate.serial}`],
    ["renewal due", certificate && (localTime(certificate.renewal_due_at) ?? null)],
    ["profile", node.profile && `${node.profile.name} version ${node.profile.version}`],
    ["addresses", setup && `api ${setup.urls.node_api}, terminals ${setup.urls.node_terminal ?? "none"}`],
    ["installed in", setup?.install_root ?? null],
    ["address", node.address],
    ["provider", node.provider],
    ["network side", node.network_side],
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
        `    ${[code, severity, place.hop && `hop ${placeText(place)}`].filter(Boolean).join(", ")}`,
        `    ${adviceFor(node.name, next_step)}`,
        ...(runbook ? [`    runbook ${url}${runbook}`] : []),
        ...(correlation_id ? [`    correlation id ${correlation_id}`] : []),
      ],
    ),
  ].join("\n");
}

function linkOf({ link, link_since }: NodeDetail): string | null {
  if (link === null) return null;
  const name = nodeLinkTitles[link].title.toLowerCase();
  return link_since === null ? name : `${name}, opened ${ago(link_since)}`;
}

function clockOf(skewSeconds: number): string {
  if (Math.abs(skewSeconds) < 0.05) return "in sync with the server";
  return `${Math.abs(skewSeconds).toFixed(1)} s ${skewSeconds < 0 ? "behind" : "ahead of"} the server`;
}

function diskOf(disk: { total_bytes: number; free_bytes: number }): string {
  return `${bytesInWords(disk.free_bytes)} of ${bytesInWords(disk.total_bytes)} disk free`;
}
