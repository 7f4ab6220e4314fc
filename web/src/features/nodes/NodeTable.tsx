// Nodes as rows. A problem takes one line; its next step is shown above the table for all nodes that have it, and
// on the node's page.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { classes } from "../../design/controls/classes.ts";
import { Prose } from "../../design/layout/Prose.tsx";
import { Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { SecondsAgo } from "../../design/values/When.tsx";
import { NodeLink } from "./NodeLink.tsx";
import { connectionMarks, statusMarks } from "./node-marks.ts";

const columns = [
  "Name",
  "Connection",
  "Status",
  { wide: "Attention" },
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
  return (
    <tr className={node.status === "retired" ? "text-ink-muted" : undefined}>
      <Cell className="min-w-26">
        <NodeLink node={node} />
        <div className="text-sm md:hidden">
          <Reasons node={node} />
        </div>
      </Cell>
      <Cell>
        <Connection node={node} />
      </Cell>
      <Cell title={node.status_reason ?? undefined}>
        <StatusMark state={state}>{word}</StatusMark>
      </Cell>
      <Cell className={classes(wideOnly, "max-w-96 text-sm")}>
        <Reasons node={node} />
      </Cell>
      <Cell className={classes(wideOnly, "whitespace-nowrap")}>
        {node.os ?? <span className="text-ink-muted">unknown</span>}
        {node.arch && <span className="ml-1.5 text-sm text-ink-muted">{node.arch}</span>}
      </Cell>
      <Cell className={classes(wideOnly, "font-mono text-sm")}>{node.agent_version ?? ""}</Cell>
      <Cell className={classes(wideOnly, "tabular-nums")}>
        {node.running_tasks ? node.running_tasks : <span className="text-ink-muted">{node.running_tasks}</span>}
      </Cell>
    </tr>
  );
}

function Reasons({ node: { attention } }: { node: Pick<Node, "attention"> }) {
  const [first, ...others] = attention;
  if (!first) return null;
  return (
    <StatusMark state="degraded" long>
      <span title={attention.map(({ message }) => message).join("\n")}>
        <Prose text={first.message} />
        {others.length > 0 && <span className="font-normal"> and {others.length} more</span>}
      </span>
    </StatusMark>
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
