// What has to be seen before a node counts as recovered, and what of it was. Nothing is checked off without evidence.

import type { RecoveryCheckState } from "@holdfast/contracts/endpoints/drift";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { needsRecovery } from "@holdfast/contracts/words/recovery";
import { recoveryCheckStateTitles, recoveryCheckTitles } from "@holdfast/contracts/words/state-titles";
import { Card } from "../../design/layout/Card.tsx";
import { marksOf } from "../../design/values/marks.ts";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useExplanation } from "./queries.ts";

const marks = marksOf<RecoveryCheckState>(recoveryCheckStateTitles, {
  done: "ok",
  failed: "failed",
  unknown: "unknown",
});

export function Checklist({ node }: { node: Pick<Node, "id"> }) {
  const { data } = useExplanation(node.id);
  if (!data || !needsRecovery(data)) return null;
  const done = data.checklist.filter(({ state }) => state === "done").length;
  return (
    <Card
      title="Recovery"
      note={
        <>
          {done} of {data.checklist.length} seen
          {data.repaired_at && (
            <>
              {" "}
              since the repair, <When at={data.repaired_at} />
            </>
          )}
        </>
      }
    >
      <ol aria-label="Recovery checklist">
        {data.checklist.map(({ check, state, observed_at }) => (
          <li
            key={check}
            className="flex flex-wrap items-baseline justify-between gap-x-4 border-b border-line px-5 py-2 last:border-b-0"
          >
            {recoveryCheckTitles[check]}
            <span className="inline-flex flex-wrap items-baseline gap-x-2">
              <span title={marks[state].meaning}>
                <StatusMark state={marks[state].state}>{marks[state].word}</StatusMark>
              </span>
              {observed_at && (
                <span className="text-sm text-ink-muted">
                  <When at={observed_at} />
                </span>
              )}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
