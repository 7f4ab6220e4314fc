// Tests one step of the draft as it is in the editor: runs it for real, with outputs that one gives for the steps before it. The result is
// shown here, so that nobody has to leave what is not saved.

import { testStep } from "@holdfast/contracts/endpoints/runs";
import type { Node } from "@holdfast/workflows/document/schema";
import { stepsReadBy } from "@holdfast/workflows/document/step-test";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../../design/controls/Button.tsx";
import { Dialog, DialogActions } from "../../../design/dialogs/Dialog.tsx";
import { FormDialog } from "../../../design/dialogs/FormDialog.tsx";
import { Notice } from "../../../design/feedback/Notice.tsx";
import { TextareaField } from "../../../design/forms/Field.tsx";
import { StatusMark } from "../../../design/values/StatusMark.tsx";
import { Structured } from "../../../design/values/Structured.tsx";
import { useChange } from "../../../use-change.ts";
import { useRun } from "../../runs/queries.ts";
import { nodeMarks } from "../../runs/run-marks.ts";

export type StepUnderTest = { id: string; node: Node; workflowId: string; source: string };

type TestStepProps = StepUnderTest & { onClose: () => void };

export function TestStep(props: TestStepProps) {
  const [runId, setRunId] = useState<string | null>(null);
  if (runId === null) return <Question {...props} onStarted={setRunId} />;
  return <Result {...props} runId={runId} onAgain={() => setRunId(null)} />;
}

function Question({
  id,
  node,
  workflowId,
  source,
  onClose,
  onStarted,
}: TestStepProps & { onStarted: (id: string) => void }) {
  const before = stepsReadBy(node);
  const [input, setInput] = useState("{}");
  const [outputs, setOutputs] = useState<Readonly<Record<string, string>>>({});
  const read = parse(input);
  const given = Object.fromEntries(before.map((one) => [one, parse(outputs[one] ?? "null")]));
  const isReady = isObject(read?.value) && Object.values(given).every((one) => one !== undefined);
  const test = useChange({
    send: (call, idempotencyKey) =>
      call(testStep, {
        params: { workflow_id: workflowId },
        body: {
          ...{ source, node: id, input: read?.value as Record<string, unknown> },
          outputs: Object.fromEntries(before.map((one) => [one, given[one]?.value])),
        },
        idempotencyKey,
      }),
    onDone: (run) => onStarted(run.id),
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Test step ${id}`}
      description="Runs this step of the draft now, and no other. It is not a trial: what the step does outside really happens."
      action="Run step"
      mutation={{ ...test, mutate: (key) => isReady && test.mutate(key) }}
    >
      <TextareaField
        label="Input"
        hint="A JSON object. Expressions read it as input."
        error={isObject(read?.value) ? undefined : "This is no JSON object."}
        mono
        rows={3}
        value={input}
        onChange={(event) => setInput(event.currentTarget.value)}
      />
      {before.map((one) => (
        <TextareaField
          key={one}
          label={`Output of ${one}`}
          hint={`JSON. Expressions read it as nodes.${one}.output.`}
          error={given[one] ? undefined : "This is no JSON."}
          mono
          rows={3}
          value={outputs[one] ?? "null"}
          onChange={(event) => setOutputs({ ...outputs, [one]: event.currentTarget.value })}
        />
      ))}
    </FormDialog>
  );
}

function Result({ id, runId, onClose, onAgain }: TestStepProps & { runId: string; onAgain: () => void }) {
  const run = useRun(runId);
  const step = run.data?.nodes.find((one) => one.id === id);
  const mark = nodeMarks[step?.status ?? "pending"];
  return (
    <Dialog open onClose={onClose} title={`Test of step ${id}`}>
      <div className="space-y-4">
        <p role="status">
          <StatusMark state={mark.state}>{mark.word}</StatusMark>{" "}
          <span className="text-sm text-ink-muted">{step?.waiting_for && `Waits for ${step.waiting_for}.`}</span>
        </p>
        {step?.failure && (
          <Notice state="failed" title={step.failure.message}>
            <p className="font-mono text-sm text-ink-muted">{step.failure.code}</p>
          </Notice>
        )}
        {step?.status === "succeeded" && <Structured value={step.output} label="output" />}
        <Link
          to="/runs/$runId"
          params={{ runId }}
          target="_blank"
          className="inline-block rounded-sm font-medium text-kelp hover:underline"
        >
          Open this run in a new tab
        </Link>
      </div>
      <DialogActions>
        <Button onClick={onAgain}>Test again</Button>
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      </DialogActions>
    </Dialog>
  );
}

/** Undefined: no JSON. */
function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
