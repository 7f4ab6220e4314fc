// Somebody else saved the draft meanwhile: what differs, and a choice.

import { Button } from "../../../design/controls/Button.tsx";
import { Notice } from "../../../design/feedback/Notice.tsx";
import { When } from "../../../design/values/When.tsx";
import { LineDiff } from "./LineDiff.tsx";
import type { Draft } from "./use-draft.ts";

export function Conflict({ draft }: { draft: Draft }) {
  const { conflict, text } = draft;
  if (!conflict) return null;
  return (
    <div role="alert" className="mb-4">
      <Notice state="degraded" title={`${conflict.changed_by} saved this draft meanwhile.`}>
        <p className="mb-2">
          Revision {conflict.revision} was saved <When at={conflict.changed_at} />. Your text is still here and not
          saved. From their text to yours:
        </p>
        <LineDiff label="Differences" before={conflict.source} after={text} />
        <div className="mt-3 flex flex-wrap gap-2">
          <Button look="primary" busy={draft.save.isPending} onClick={draft.keepOwn}>
            Replace theirs with yours
          </Button>
          <Button onClick={draft.takeStored}>Use theirs, discard yours</Button>
        </div>
      </Notice>
    </div>
  );
}
