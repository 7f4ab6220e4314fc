// Nodes as rows. A problem takes one line; its next step is shown above the table for all nodes that have it, and
// on the node's page.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { owners } from "@holdfast/contracts/reasons/owners";
import { classes } from "../../design/controls/classes.ts";
import { Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { SecondsAgo, When } from "../../design/values/When.tsx";
import { AsOf, isCurrent } from "./AsOf.tsx";
import { LayerMarks } from "./LayerMarks.tsx";
import { NodeLink } from "./NodeLink.tsx";
import { connectionMarks, statusMarks } from "./node-marks.ts";
import { pendingWords } from "./pending.ts";

const columns = [
  "Name",
  "Connection",
  "Status",
  { wide: "Cause" },
  { wide: "Layers" },
  { wide: "System" },
  { wide: "Agent" },
  { wide: "Running" },
];

export function NodeTable({ nodes }: { nodes: Node[] }) {
  return (
    <Table label="Nodes" columns={columns}>
      {nodes.map((node) => (
        <NodeRow key={node.id} node={node} />
      ))}
    </Table>
  );
}

function NodeRow({ node }: { node: Node }) {
  const { state, word } = statusMarks[node.status];
  const old = isCurrent(node) ? undefined : "text-ink-muted";
  return (
    <tr className={node.status === "retired" ? "text-ink-muted" : undefined}>
      <Cell className="min-w-26">
        <NodeLink node={node} />
        <div className="text-sm md:hidden">
          <Causes node={node} />
        </div>
      </Cell>
      <Cell>
        <Connection node={node} />
      </Cell>
      <Cell title={node.status_reason ?? undefined}>
        <StatusMark state={state}>{word}</StatusMark>
      </Cell>
      <Cell className={classes(wideOnly, "max-w-96 text-sm")}>
        <Causes node={node} />
      </Cell>
      <Cell className={wideOnly}>
        {node.status !== "retired" && node.layers && <LayerMarks layers={node.layers} />}
      </Cell>
      <Cell className={classes(wideOnly, "whitespace-nowrap", old)}>
        {node.os ?? <span className="text-ink-muted">unknown</span>}
        {node.arch && <span className="ml-1.5 text-sm text-ink-muted">{node.arch}</span>}
      </Cell>
      <Cell className={classes(wideOnly, "font-mono text-sm", old)}>{node.agent_version ?? ""}</Cell>
      <Cell className={classes(wideOnly, "tabular-nums", old)}>
        {node.running_tasks ? node.running_tasks : <span className="text-ink-muted">{node.running_tasks}</span>}{" "}
        {node.running_tasks !== null && <AsOf node={node} />}
      </Cell>
    </tr>
  );
}

/** The worst one with who repairs it, and how many others there are. */
function Causes({ node }: { node: Node }) {
  const [worst, ...others] = node.attention;
  return (
    <>
      {node.cause_pending && <StatusMark state="unknown">{pendingWords(node)}</StatusMark>}
      {worst && (
        <StatusMark state={worst.severity === "P0" ? "failed" : "degraded"} long>
          <span title={node.attention.map(({ message }) => message).join("\n")}>
            {worst.title}
            {others.length > 0 && <span className="font-normal"> and {others.length} more</span>}
            <span className="block font-normal text-ink-muted">
              {worst.severity} · {worst.owner_id && `${owners[worst.owner_id].title} · `}since{" "}
              <When at={worst.since} />
            </span>
          </span>
        </StatusMark>
      )}
    </>
  );
}

/** A retired node is not expected to connect. */
export function Connection({ node }: { node: Pick<Node, "status" | "connection" | "heartbeat_at"> }) {
  const { state, word } = connectionMarks[node.connection];
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      {node.status !== "retired" && <StatusMark state={state}>{word}</StatusMark>}
      {node.heartbeat_at && (
        <span className="text-sm text-ink-muted">
          last heartbeat <SecondsAgo at={node.heartbeat_at} />
        </span>
      )}
    </span>
  );
}
