// Nodes as text for people.

import type { LayerState } from "@holdfast/contracts/endpoints/drift";
import type { Node, NodeConnection, NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { placeText } from "@holdfast/contracts/reasons/hops";
import { owners } from "@holdfast/contracts/reasons/owners";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import {
  layerStateTitles,
  nodeAgentStatusTitles,
  nodeConnectionTitles,
  nodeLinkTitles,
} from "@holdfast/contracts/words/state-titles";
import { ago, localTime, table } from "../../output.ts";
import { describeHealth } from "./health.ts";

const shapes: Record<NodeConnection, string> = { online: "●", stale: "◐", offline: "■", never: "○" };

function connectionOf({ connection }: Pick<Node, "connection">): string {
  return `${shapes[connection]} ${nodeConnectionTitles[connection].title.toLowerCase()}`;
}

export function nodeTable(nodes: readonly Node[], { filtered, now }: { filtered: boolean; now: number }): string {
  if (nodes.length === 0) {
    return filtered ? "No node matches." : "No nodes yet. Add one: holdfast node token create";
  }
  return table(nodes, [
    { title: "name", of: (row) => row.name },
    { title: "status", of: (row) => row.status },
    { title: "connection", of: (row) => (row.status === "retired" ? null : connectionOf(row)) },
    { title: "last heartbeat", of: (row) => ago(row.heartbeat_at, now) },
    { title: "severity", of: ({ attention: [worst] }) => worst?.severity ?? null },
    { title: "cause", of: causeOf },
    { title: "owner", of: ({ attention: [worst] }) => (worst?.owner_id ? owners[worst.owner_id].title : null) },
    { title: "since", of: ({ attention: [worst] }) => (worst ? ago(worst.since, now) : null) },
    { title: "users see", of: ({ user_state }) => user_state },
    ...layers.map((layer) => ({ title: layer, of: (row: Node) => row.layers && layerOf(row.layers[layer]) })),
    { title: "agent", of: (row) => row.agent_version },
    { title: "system", of: (row) => (row.os ? `${row.os} ${row.arch ?? ""}` : null) },
    {
      title: "running",
      of: (row) => (row.running_tasks === null ? null : `${row.running_tasks}${asOf(row, now)}`),
    },
    { title: "id", of: (row) => row.id },
  ]);
}

const layers = ["management", "workload", "access"] as const;
const layerShapes: Record<LayerState, string> = { working: "●", impaired: "■", recovering: "◐", unknown: "○" };
const layerOf = (state: LayerState) => `${layerShapes[state]} ${layerStateTitles[state].title.toLowerCase()}`;

/** The worst one; the others are on the node's page. */
function causeOf({ attention: [worst, ...others], cause_pending, connection }: Node): string | null {
  const pending = cause_pending ? pendingWords(connection) : null;
  if (!worst) return pending;
  const more = others.length > 0 ? ` and ${others.length} more` : "";
  return `${worst.title} (${worst.code})${more}${pending ? `; ${pending}` : ""}`;
}

function pendingWords(connection: NodeConnection): string {
  return connection === "online" ? "back online, being checked" : "offline, cause being determined";
}

/** What an agent reported is as old as its last heartbeat; only of an online node is it so now. */
function asOf({ connection, heartbeat_at }: Pick<Node, "connection" | "heartbeat_at">, now: number): string {
  return connection === "online" || heartbeat_at === null ? "" : ` (as of ${ago(heartbeat_at, now)})`;
}

function recoveryOf({ recovery_token }: NodeDetail): string {
  if (!recovery_token) return "no token confirmed by the node; without one it cannot recover by itself";
  return `by itself, with a token that works until ${localTime(recovery_token.expires_at)}`;
}

/** `url`: of the server, which serves the runbooks, too. */
export function describeNode(node: NodeDetail, { url }: { url: string }, now = Date.now()): string {
  const { facts, certificate, setup } = node;
  const old = asOf(node, now);
  const reported = (text: string | null | undefined) => (text ? `${text}${old}` : null);
  const rows: [string, string | null][] = [
    ["id", node.id],
    ["status", node.status + (node.status_reason ? ` (${node.status_reason})` : "")],
    ["connection", `${connectionOf(node)}, last heartbeat ${ago(node.heartbeat_at, now)}`],
    ["link", linkOf(node, now)],
    ["agent status", node.agent_status && nodeAgentStatusTitles[node.agent_status].title.toLowerCase()],
    ...layers.map((layer): [string, string | null] => [layer, node.layers && layerOf(node.layers[layer])]),
    ["users see", node.user_state],
    ["agent", reported(node.agent_version && `${node.agent_version}, started ${ago(node.agent_started_at, now)}`)],
    ["system", reported(node.os && `${node.os} ${node.arch ?? ""}${facts ? `, kernel ${facts.os.kernel}` : ""}`)],
    [
      "machine",
      reported(facts && `${facts.cpus} CPUs, ${bytesInWords(facts.memory_bytes)} memory, ${diskOf(facts.disk)}`),
    ],
    [
      "accelerators",
      reported(facts && (facts.accelerators.map((one) => `${one.vendor} ${one.model}`).join(", ") || "none")),
    ],
    ["account", reported(facts?.account)],
    ["capabilities", reported(node.capabilities.join(", ") || "none")],
    ["clock", node.clock_skew_seconds === null ? null : reported(clockOf(node.clock_skew_seconds))],
    [
      "tasks",
      node.running_tasks === null
        ? null
        : reported(`${node.running_tasks} running, ${node.unsent_results ?? 0} results not delivered`),
    ],
    ["certificate", certificate && `expires ${localTime(certificate.not_after)}, serial ${certificate.serial}`],
    ["renewal due", certificate && (localTime(certificate.renewal_due_at) ?? null)],
    ["recovery", certificate && recoveryOf(node)],
    ["profile", reported(node.profile && `${node.profile.name} version ${node.profile.version}`)],
    [
      "addresses",
      reported(setup && `api ${setup.urls.node_api}, terminals ${setup.urls.node_terminal ?? "none"}`),
    ],
    ["installed in", reported(setup?.install_root)],
    ["address", reported(node.address)],
    ["provider", node.provider],
    ["network side", node.network_side],
    ["enrolled", localTime(node.created_at)],
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [
    node.name,
    ...shown.map(([label, value]) => `  ${label.padEnd(12)} ${value}`),
    ...describeHealth(node.health),
    ...(node.cause_pending ? ["", `  ! ${pendingWords(node.connection)}`] : []),
    ...node.attention.flatMap((cause) => ["", ...describeAttention(cause, { name: node.name, url, now })]),
  ].join("\n");
}

type Shown = { name: string; url: string; now: number };

function describeAttention(cause: Node["attention"][number], { name, url, now }: Shown): string[] {
  const { code, reason, title, severity, confidence, owner_id, message, runbook, correlation_id } = cause;
  const codes = code === reason ? code : `${code}, classified as ${reason}`;
  const place = cause.hop && `hop ${placeText(cause)}`;
  const owner = owner_id && `owner ${owners[owner_id].title.toLowerCase()}`;
  return [
    `  ! ${title}: ${message}`,
    `    ${[codes, severity, `${confidence} confidence`, owner, place].filter(Boolean).join(", ")}`,
    `    since ${ago(cause.since, now)}; users see ${cause.user_state}`,
    `    ${adviceFor(name, cause.next_step)}`,
    ...(runbook ? [`    runbook ${url}${runbook}`] : []),
    ...(correlation_id ? [`    correlation id ${correlation_id}`] : []),
  ];
}

function linkOf({ link, link_since }: NodeDetail, now: number): string | null {
  if (link === null) return null;
  const name = nodeLinkTitles[link].title.toLowerCase();
  return link_since === null ? name : `${name}, opened ${ago(link_since, now)}`;
}

function clockOf(skewSeconds: number): string {
  if (Math.abs(skewSeconds) < 0.05) return "in sync with the server";
  return `${Math.abs(skewSeconds).toFixed(1)} s ${skewSeconds < 0 ? "behind" : "ahead of"} the server`;
}

function diskOf(disk: { total_bytes: number; free_bytes: number }): string {
  return `${bytesInWords(disk.free_bytes)} of ${bytesInWords(disk.total_bytes)} disk free`;
}
