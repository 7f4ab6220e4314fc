// Runs a published version, with an input.

import { startRun } from "@holdfast/contracts/endpoints/runs";
import type { Workflow } from "@holdfast/contracts/endpoints/workflows";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { FormDialog } from "../../../design/dialogs/FormDialog.tsx";
import { TextareaField } from "../../../design/forms/Field.tsx";
import { useChange } from "../../../use-change.ts";

type RunDialogProps = { workflow: Workflow; hasUnpublished: boolean; onClose: () => void };

export function RunDialog({ workflow, hasUnpublished, onClose }: RunDialogProps) {
  const [text, setText] = useState("{}");
  const input = inputOf(text);
  const navigate = useNavigate();
  const start = useChange({
    send: (call, idempotencyKey) =>
      call(startRun, { params: { workflow_id: workflow.id }, body: { input: input ?? {} }, idempotencyKey }),
    said: `Started a run of ${workflow.name}`,
    onDone: ({ id }) => void navigate({ to: "/runs/$runId", params: { runId: id } }),
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Run ${workflow.name}`}
      description={
        hasUnpublished
          ? `Runs version ${workflow.published_version}. The draft has changes that are not published.`
          : `Runs version ${workflow.published_version}.`
      }
      action={`Run version ${workflow.published_version}`}
      mutation={{ ...start, mutate: (key) => input && start.mutate(key) }}
    >
      <TextareaField
        label="Input"
        hint="A JSON object. Expressions read it as input."
        error={input ? undefined : "This is no JSON object."}
        mono
        rows={5}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </FormDialog>
  );
}

function inputOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
