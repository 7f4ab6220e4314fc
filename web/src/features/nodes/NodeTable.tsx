// Nodes as rows. What needs attention stands below its node, because the next step is what one came for.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { Link } from "@tanstack/react-router";
import { classes } from "../../design/classes.ts";
import { StatusMark } from "../../design/StatusMark.tsx";
import { Cell, Table, wideOnly } from "../../design/Table.tsx";
import { SecondsAgo } from "../../design/When.tsx";
import { Attention } from "./Attention.tsx";
import { connectionMarks, statusMarks } from "./node-marks.ts";

const columns = ["Name", "Connection", "Status", { wide: "System" }, { wide: "Agent" }, { wide: "Running" }];

export function NodeTable({ nodes }: { nodes: Node[] }) {
  return (
    <Table label="Nodes" columns={columns}>
      {nodes.map((node) => (
        <NodeRows key={node.id} node={node} />
      ))}
    </Table>
  );
}

function NodeRows({ node }: { node: Node }) {
  const { state, word } = statusMarks[node.status];
  const attention = node.attention.length > 0;
  const join = attention && "border-b-0";
  return (
    <>
      <tr className={node.status === "retired" ? "text-ink-muted" : undefined}>
        <Cell className={classes("min-w-26", join)}>
          <Link
            to="/nodes/$nodeId"
            params={{ nodeId: node.id }}
            className="rounded-sm font-medium text-kelp [overflow-wrap:anywhere] hover:underline"
          >
            {node.name}
          </Link>
        </Cell>
        <Cell className={classes(join)}>
          <Connection node={node} />
        </Cell>
        <Cell className={classes(join)} title={node.status_reason ?? undefined}>
          <StatusMark state={state}>{word}</StatusMark>
        </Cell>
        <Cell className={classes(wideOnly, "whitespace-nowrap", join)}>
          {node.os ?? <span className="text-ink-muted">unknown</span>}
          {node.arch && <span className="ml-1.5 text-sm text-ink-muted">{node.arch}</span>}
        </Cell>
        <Cell className={classes(wideOnly, "font-mono text-sm", join)}>{node.agent_version ?? ""}</Cell>
        <Cell className={classes(wideOnly, "tabular-nums", join)}>
          {node.running_tasks > 0 ? (
            node.running_tasks
          ) : (
            <span className="text-ink-muted">{node.running_tasks}</span>
          )}
        </Cell>
      </tr>
      {attention && (
        <tr>
          <Cell colSpan={columns.length} className="pt-0 pb-3">
            <Attention node={node} />
          </Cell>
        </tr>
      )}
    </>
  );
}

export function Connection({ node }: { node: Pick<Node, "connection" | "heartbeat_at"> }) {
  const { state, word } = connectionMarks[node.connection];
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <StatusMark state={state}>{word}</StatusMark>
      {node.heartbeat_at && (
        <span className="text-sm text-ink-muted">
          seen <SecondsAgo at={node.heartbeat_at} />
        </span>
      )}
    </span>
  );
}
