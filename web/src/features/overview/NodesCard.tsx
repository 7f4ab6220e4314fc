// The fleet in a few numbers, and what in it needs a person.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { nodeStatuses } from "@holdfast/contracts/node-protocol";
import { Link } from "@tanstack/react-router";
import { Card } from "../../design/Card.tsx";
import { ErrorNotice } from "../../design/ErrorNotice.tsx";
import { Prose } from "../../design/Prose.tsx";
import { StatusMark } from "../../design/StatusMark.tsx";
import { connectionMarks, statusMarks } from "../nodes/node-marks.ts";
import { useNodes } from "../nodes/queries.ts";

const mostShown = 3;

export function NodesCard() {
  const { items, hasMore, error, refresh } = useNodes();
  const nodes = items?.filter(({ status }) => status !== "retired") ?? [];
  const troubled = nodes.filter(({ attention }) => attention.length > 0);
  const link = (
    <Link to="/nodes" className="rounded-sm font-medium text-kelp hover:underline">
      All nodes
    </Link>
  );
  if (items && nodes.length === 0) return null;
  return (
    <Card title="Nodes" note={link}>
      {error && (
        <div className="p-5">
          <ErrorNotice error={error} onRetry={refresh} />
        </div>
      )}
      {nodes.length > 0 && <Counts nodes={nodes} more={hasMore} />}
      {items && troubled.length === 0 && <p className="px-5 py-3 text-ink-muted">Nothing needs attention.</p>}
      <ul aria-label="Nodes that need attention">
        {troubled.slice(0, mostShown).map((node) => (
          <Trouble key={node.id} node={node} />
        ))}
      </ul>
      {troubled.length > mostShown && (
        <p className="px-5 py-2.5 text-sm text-ink-muted">and {troubled.length - mostShown} more</p>
      )}
    </Card>
  );
}

function Counts({ nodes, more }: { nodes: Node[]; more: boolean }) {
  const connections = (["online", "stale", "never"] as const).map((connection) => ({
    ...connectionMarks[connection],
    count: nodes.filter((node) => node.connection === connection).length,
  }));
  const unusual = nodeStatuses
    .filter((status) => status !== "active" && status !== "retired")
    .map((status) => ({ ...statusMarks[status], count: nodes.filter((node) => node.status === status).length }));
  return (
    <ul className="flex flex-wrap gap-x-5 gap-y-1.5 border-b border-line px-5 py-3 last:border-b-0">
      {[...connections, ...unusual]
        .filter(({ count, word }) => count > 0 || word === "Online")
        .map(({ state, word, count }) => (
          <li key={word} className="tabular-nums">
            <StatusMark state={count === 0 ? "unknown" : state}>
              {count} {word.toLowerCase()}
            </StatusMark>
          </li>
        ))}
      {more && <li className="text-ink-muted">of the newest {nodes.length}</li>}
    </ul>
  );
}

function Trouble({ node }: { node: Node }) {
  return (
    <li className="border-b border-line px-5 py-3 last:border-b-0">
      <Link
        to="/nodes/$nodeId"
        params={{ nodeId: node.id }}
        className="rounded-sm font-medium text-kelp [overflow-wrap:anywhere] hover:underline"
      >
        {node.name}
      </Link>
      {node.attention.map((item) => (
        <div key={`${item.code} ${item.message}`} className="mt-1">
          <StatusMark state="degraded" long>
            <span>
              <Prose text={item.message} />
            </span>
          </StatusMark>
          <p className="pl-4.5 text-sm text-ink-muted">
            <Prose text={item.next_step.replaceAll("<id>", node.name)} />
          </p>
        </div>
      ))}
    </li>
  );
}
