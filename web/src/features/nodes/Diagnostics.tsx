// What the node's agent recorded about itself, newest first. The texts come from the catalogue of reasons.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { placeOf, placeText } from "@holdfast/contracts/reasons/hops";
import { isProblem, nodeReason, ownerGroupOf, unknownReason } from "@holdfast/contracts/reasons/node";
import { nodeOwnerWords } from "@holdfast/contracts/reasons/owners";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { TraceLink } from "../trace/TraceLink.tsx";
import { useNodeDiagnostics } from "./queries.ts";

const shownAtFirst = 5;

export function Diagnostics({ node }: { node: Pick<Node, "id" | "name"> }) {
  const diagnostics = useNodeDiagnostics(node.id);
  const [all, setAll] = useState(false);
  const items = diagnostics.data?.items ?? [];
  return (
    <Card title="Diagnostics" note="reported by the agent, newest first">
      {diagnostics.error && (
        <div className="p-5">
          <ErrorNotice error={diagnostics.error} onRetry={() => void diagnostics.refetch()} />
        </div>
      )}
      {diagnostics.data && items.length === 0 && (
        <p className="px-5 py-4 text-ink-muted">No problems reported by the agent.</p>
      )}
      <ul>
        {(all ? items : items.slice(0, shownAtFirst)).map((record) => (
          <Entry key={record.seq} record={record} nodeName={node.name} />
        ))}
      </ul>
      {!all && items.length > shownAtFirst && (
        <p className="px-3 py-2">
          <Button look="quiet" onClick={() => setAll(true)}>
            Show all {items.length}
          </Button>
        </p>
      )}
    </Card>
  );
}

function Entry({ record, nodeName }: { record: DiagnosticRecord; nodeName: string }) {
  const { message, nextStep, at } = nodeReason(record.reason) ?? unknownReason;
  const well = !isProblem(record.reason);
  const { place } = nodeOwnerWords[ownerGroupOf(record.reason)];
  return (
    <li className="border-b border-line px-5 py-3 last:border-b-0">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <span className="inline-flex flex-wrap items-baseline gap-x-2">
          <StatusMark state={well ? "ok" : "degraded"}>{titleOf(record.reason)}</StatusMark>
          <span className="font-mono text-sm text-ink-muted">{record.reason}</span>
          {at && <span className="text-sm text-ink-muted">at {placeText(placeOf(at))}</span>}
          {place && <span className="text-sm text-ink-muted">{place}</span>}
        </span>
        <span className="text-sm text-ink-muted">
          <When at={record.at} />
        </span>
      </div>
      <p className="mt-1">
        {message}
        {record.detail && (
          <span className="block font-mono text-sm text-ink-muted [overflow-wrap:anywhere]">{record.detail}</span>
        )}
      </p>
      {!well && (
        <p className="text-ink-muted">
          <Prose text={adviceFor(nodeName, nextStep)} />
        </p>
      )}
      {record.correlation_id && (
        <p className="mt-1 flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
          Correlation id <CopyableId id={record.correlation_id} label="Copy correlation id" />
          <TraceLink id={record.correlation_id} />
        </p>
      )}
    </li>
  );
}
