// What the verdict on a node rests on: the parts of the contract with it, and on demand every observation.

import type { ContractPartState, Explanation } from "@holdfast/contracts/endpoints/drift";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { contractPartStateTitles, contractPartTitles } from "@holdfast/contracts/words/state-titles";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { Correlation } from "./Correlation.tsx";
import { useExplanation } from "./queries.ts";

const marks: Record<ContractPartState, State> = { in_order: "ok", drifted: "degraded", unknown: "unknown" };

export function EvidenceCard({ node }: { node: Pick<Node, "id"> }) {
  const { data } = useExplanation(node.id);
  const [all, setAll] = useState(false);
  if (!data) return null;
  return (
    <Card title="Evidence">
      <Facts className="px-5 py-1.5">
        {data.parts.map(({ part, state, observed_at }) => (
          <Fact key={part} name={contractPartTitles[part]}>
            <span title={contractPartStateTitles[state].meaning}>
              <StatusMark state={marks[state]}>{contractPartStateTitles[state].title}</StatusMark>
            </span>
            {observed_at && (
              <span className="ml-2 text-sm text-ink-muted">
                observed <When at={observed_at} />
              </span>
            )}
          </Fact>
        ))}
      </Facts>
      {all && <Observations evidence={data.evidence} />}
      <p className="border-t border-line px-3 py-2">
        <Button look="quiet" onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? "Hide observations" : `Show ${data.evidence.length} observations`}
        </Button>
      </p>
    </Card>
  );
}

/** What is too old to be relied upon is never shown as if it were true now. */
function Observations({ evidence }: Pick<Explanation, "evidence">) {
  return (
    <ul aria-label="Observations" className="border-t border-line">
      {evidence.map(({ id, kind, key, value, observer, observed_at, fresh, correlation_id }) => (
        <li key={id} className="border-b border-line px-5 py-2 last:border-b-0">
          <span className={fresh ? undefined : "text-ink-muted line-through decoration-1"}>
            <span className="font-mono text-sm">
              {kind}
              {key && ` ${key}`}
            </span>{" "}
            {value}
          </span>
          <span className="block text-sm text-ink-muted">
            {observer}, <When at={observed_at} />
            {!fresh && ", outdated"}
          </span>
          {correlation_id && <Correlation id={correlation_id} />}
        </li>
      ))}
    </ul>
  );
}
