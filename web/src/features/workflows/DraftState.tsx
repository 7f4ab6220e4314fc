// Whether the draft of a workflow is what was published, and whether it could be.

import type { Workflow } from "@holdfast/contracts/endpoints/workflows";
import { StatusMark } from "../../design/values/StatusMark.tsx";

export function DraftState({ workflow }: { workflow: Workflow }) {
  const { draft_valid, changed_since_published, published_version } = workflow;
  if (!draft_valid) return <StatusMark state="failed">Has problems</StatusMark>;
  if (!changed_since_published) return <StatusMark state="ok">Published</StatusMark>;
  return (
    <StatusMark state="degraded">
      {published_version === null ? "Not published yet" : "Unpublished changes"}
    </StatusMark>
  );
}
