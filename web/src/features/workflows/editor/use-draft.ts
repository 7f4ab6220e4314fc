// The draft while it is edited: what was changed here, what is stored, and what to do when somebody else has stored another one.
// Nothing that was typed is given up without being told to.

import { codeOf } from "@holdfast/contracts/client";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { applyWorkflow, type getWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "../../../design/feedback/Toast.tsx";
import { useActing } from "../../../session.ts";

export type WorkflowDetail = AnswerOf<typeof getWorkflow>;

export type Draft = ReturnType<typeof useDraft>;

export function useDraft(stored: WorkflowDetail) {
  const { org, call } = useActing();
  const queryClient = useQueryClient();
  const [text, setText] = useState(stored.source);
  const [base, setBase] = useState({ source: stored.source, revision: stored.revision });
  const isDirty = text !== base.source;
  if (!isDirty && stored.revision > base.revision) takeStored();

  const refresh = () => queryClient.invalidateQueries({ queryKey: ["org", org.id, "workflows"] });

  const store = async (revision: number): Promise<number> => {
    const source = text;
    if (source === base.source && revision === base.revision) return revision;
    const answer = await call(applyWorkflow, { body: { name: stored.name, source, revision } });
    setBase({ source, revision: answer.revision });
    return answer.revision;
  };

  const save = useMutation<void, Error, number | undefined>({
    mutationFn: async (revision) => {
      await store(revision ?? base.revision);
    },
    onSuccess: () => toast("Draft saved"),
    onSettled: refresh,
  });

  const publish = useMutation<void, Error, undefined>({
    mutationFn: async () => {
      const revision = await store(base.revision);
      const { version } = await call(publishWorkflow, { params: { workflow_id: stored.id }, body: { revision } });
      toast(`Published version ${version}`);
    },
    onSettled: refresh,
  });

  const isConflict = [save.error, publish.error].some((error) => codeOf(error) === "workflow_changed");

  return {
    ...{ text, setText, isDirty, save, publish },
    /** What the other one stored, once it was read. */
    conflict: isConflict && stored.revision > base.revision ? stored : undefined,
    keepOwn: () => save.mutate(stored.revision),
    takeStored: () => {
      takeStored();
      save.reset();
      publish.reset();
    },
  };

  function takeStored(): void {
    setBase({ source: stored.source, revision: stored.revision });
    setText(stored.source);
  }
}
