// Why a node is not healthy: the causes, worst first, each with its owner, its next step and what it explains. Commands name the
// node, so that they can be pasted as they stand.

import type { Cause, Explanation } from "@holdfast/contracts/endpoints/drift";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { owners } from "@holdfast/contracts/reasons/owners";
import { type OfferedAction, offeredAction } from "@holdfast/contracts/words/actions";
import { useState } from "react";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { RunbookLink } from "../../design/layout/RunbookLink.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { When } from "../../design/values/When.tsx";
import { TraceLink } from "../trace/TraceLink.tsx";
import { CloneDecision } from "./Clone.tsx";
import { Correlation } from "./Correlation.tsx";
import { JoinDialog, type NewToken } from "./JoinDialog.tsx";
import { NextAction } from "./NextAction.tsx";
import { useExplanation } from "./queries.ts";

type Of = Pick<Node, "id" | "name">;

export function Causes({ node }: { node: Of }) {
  const [token, setToken] = useState<NewToken | null>(null);
  return (
    <>
      <Listed node={node} onKept={setToken} />
      {token && <JoinDialog token={token} rekeyed={node} onClose={() => setToken(null)} />}
    </>
  );
}

function Listed({ node, onKept }: { node: Of; onKept: (token: NewToken) => void }) {
  const explanation = useExplanation(node.id);
  if (explanation.error && !explanation.data)
    return <ErrorNotice error={explanation.error} onRetry={() => void explanation.refetch()} />;
  if (!explanation.data || explanation.data.healthy) return null;
  const { causes, incident, part_of, evidence, clone } = explanation.data;
  // What the control plane measures has no id of its own; the agent's record of the same has.
  const idOf = ({ evidence: used, reason }: Cause) =>
    [...evidence.filter(({ id }) => used.includes(id)), ...evidence.filter(({ key }) => key === reason)].find(
      ({ correlation_id }) => correlation_id !== null,
    )?.correlation_id;
  return (
    <section aria-label="Causes" className="grid gap-2">
      {part_of && <PartOf common={part_of} />}
      <ul className="grid gap-2">
        {causes.map((cause) => (
          <li key={cause.reason}>
            <Shown
              {...{ cause, node, correlationId: idOf(cause) }}
              action={offeredAction(cause, explanation.data)}
            />
          </li>
        ))}
      </ul>
      {clone && <CloneDecision {...{ node, clone, onKept }} />}
      {incident && <OpenIncident incident={incident} />}
    </section>
  );
}

/** Before the node's own causes: repairs on one node do not end what several have in common. */
function PartOf({ common }: { common: NonNullable<Explanation["part_of"]> }) {
  return (
    <Notice state="degraded" title={`Several nodes: ${common.title}`}>
      <p>{common.shared.sentence}</p>
      <p className="flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
        Incident <CopyableId id={common.incident_id} label="Copy id of the incident of several nodes" />
        <TraceLink id={common.incident_id} of="incident of several nodes" />
      </p>
    </Notice>
  );
}

type ShownProps = {
  cause: Cause;
  node: Of;
  action: OfferedAction;
  correlationId: string | null | undefined;
};

function Shown({ cause, node, action, correlationId }: ShownProps) {
  const { reason, signal, severity, confidence, owner_id, symptoms } = cause;
  return (
    <Notice state={severity === "P0" ? "failed" : "degraded"} title={cause.title}>
      <p>
        <Prose text={cause.message} />
      </p>
      <p>
        <Prose text={adviceFor(node.name, cause.next_step)} />
      </p>
      <NextAction node={node} action={action} />
      <p className="mt-1 text-sm text-ink-muted">
        {severity} · {owner_id && `${owners[owner_id].title} · `}
        {confidence} confidence · since <When at={cause.since} /> · <span className="font-mono">{reason}</span>
        {signal && signal !== reason && (
          <>
            {" "}
            · signal <span className="font-mono">{signal}</span>
          </>
        )}
      </p>
      {symptoms.length > 0 && (
        <p className="text-sm text-ink-muted">Explains: {symptoms.map(({ title }) => title).join(", ")}</p>
      )}
      <p className="text-sm text-ink-muted">
        Would change with <Prose text={cause.changed_by} />
      </p>
      {correlationId && <Correlation id={correlationId} />}
      {cause.runbook && (
        <p className="text-sm text-ink-muted">
          <RunbookLink path={cause.runbook} />
        </p>
      )}
    </Notice>
  );
}

function OpenIncident({ incident }: { incident: NonNullable<Explanation["incident"]> }) {
  return (
    <p className="flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
      Incident <CopyableId id={incident.id} label="Copy incident id" /> opened <When at={incident.opened_at} />
      <TraceLink id={incident.id} of="incident" />
    </p>
  );
}
