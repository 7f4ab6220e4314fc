// The fleet in a few numbers, and its problems.

import { fleetStates } from "@holdfast/contracts/endpoints/fleet";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { owners } from "@holdfast/contracts/reasons/owners";
import { Link } from "@tanstack/react-router";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { FleetShape } from "../fleet/FleetMark.tsx";
import { useFleet, useNodePage } from "../fleet/queries.ts";
import { ControlPlaneSuspicion } from "../fleet/Troubles.tsx";
import { count, stateInWords } from "../fleet/words.ts";
import { NodeLink } from "../nodes/NodeLink.tsx";
import { pendingWords } from "../nodes/pending.ts";

const mostShown = 3;

export function NodesCard() {
  const { data: fleet, error, refetch } = useFleet();
  const troubled = useNodePage({ state: "not_fine" }, undefined).data?.items ?? [];
  const link = (
    <Link to="/nodes" className="rounded-sm font-medium text-kelp hover:underline">
      All nodes
    </Link>
  );
  if (fleet?.total === 0) return null;
  return (
    <Card title="Nodes" note={link}>
      {error && (
        <div className="p-5">
          <ErrorNotice error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {fleet && (
        <ul className="flex flex-wrap gap-x-5 gap-y-1.5 border-b border-line px-5 py-3 last:border-b-0">
          {fleetStates
            .filter((state) => fleet.states[state] > 0)
            .map((state) => (
              <li key={state} className="inline-flex items-center gap-1.5">
                <FleetShape state={state} />
                <span className="font-semibold">{count(fleet.states[state])}</span>
                {stateInWords(state)}
              </li>
            ))}
        </ul>
      )}
      {fleet?.own_side && (
        <div className="px-5 pt-4">
          <ControlPlaneSuspicion suspicion={fleet.own_side} />
        </div>
      )}
      {fleet?.not_fine === 0 && <p className="px-5 py-3 text-ink-muted">No problems.</p>}
      <ul aria-label="Nodes that need attention">
        {troubled.slice(0, mostShown).map((node) => (
          <Trouble key={node.id} node={node} />
        ))}
      </ul>
      {fleet && fleet.not_fine > mostShown && (
        <p className="px-5 py-2.5 text-sm text-ink-muted">
          <Link to="/nodes" search={{ state: "not_fine" }} className="rounded-sm hover:underline">
            and {count(fleet.not_fine - mostShown)} more
          </Link>
        </p>
      )}
    </Card>
  );
}

function Trouble({ node }: { node: Node }) {
  return (
    <li className="border-b border-line px-5 py-3 last:border-b-0">
      <NodeLink node={node} />
      {node.cause_pending && (
        <p className="mt-1">
          <StatusMark state="unknown">{pendingWords(node)}</StatusMark>
        </p>
      )}
      {node.attention.map((item) => (
        <div key={`${item.code} ${item.message}`} className="mt-1">
          <StatusMark state={item.severity === "P0" ? "failed" : "degraded"} long>
            <span>
              {item.title}. <Prose text={item.message} />
            </span>
          </StatusMark>
          <p className="pl-4.5 text-sm text-ink-muted">
            {item.severity} · {item.owner_id && owners[item.owner_id].title}
          </p>
          <p className="pl-4.5 text-sm text-ink-muted">
            <Prose text={adviceFor(node.name, item.next_step)} />
          </p>
        </div>
      ))}
    </li>
  );
}
