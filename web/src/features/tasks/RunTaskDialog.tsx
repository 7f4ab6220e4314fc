// Runs a task on a node. The form is built from the schema of the chosen type.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { createTask, type Task, type TaskTypeInfo } from "@holdfast/contracts/endpoints/tasks";
import { useMemo, useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Dialog } from "../../design/dialogs/Dialog.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { SelectField, TextareaField } from "../../design/forms/Field.tsx";
import { problemOf } from "../../problem.ts";
import { useChange } from "../../use-change.ts";
import { useTaskTypes } from "./queries.ts";
import { SchemaFields } from "./SchemaFields.tsx";
import { type FormValues, fieldOfPath, formFieldsOf, paramsFrom, startingValues } from "./task-form.ts";

type RunTaskDialogProps = { node: NodeDetail; onClose: () => void; onRun: (task: Task) => void };

export function RunTaskDialog({ node, onClose, onRun }: RunTaskDialogProps) {
  const types = useTaskTypes();
  const byHand = types.data?.items.filter((type) => type.by_hand);
  if (byHand) return <Form node={node} types={byHand} onClose={onClose} onRun={onRun} />;
  return (
    <Dialog open onClose={onClose} title={`Run a task on ${node.name}`}>
      {types.error ? (
        <ErrorNotice error={types.error} onRetry={() => void types.refetch()} />
      ) : (
        <Loading what="task types" />
      )}
    </Dialog>
  );
}

/** One of the type's capabilities is enough; a type without any runs on every node. */
function lacking(type: TaskTypeInfo, node: NodeDetail): boolean {
  return type.capabilities.length > 0 && !type.capabilities.some((each) => node.capabilities.includes(each));
}

function Form({ node, types, onClose, onRun }: RunTaskDialogProps & { types: TaskTypeInfo[] }) {
  const [name, setName] = useState(() => types.find((each) => !lacking(each, node))?.type ?? "");
  const type = types.find((each) => each.type === name);
  const fields = useMemo(() => formFieldsOf(type?.params), [type]);
  const [values, setValues] = useState<FormValues>({});
  /** Edited as JSON: because the schema cannot be a form, or by choice. */
  const [json, setJson] = useState<string | null>(null);
  const text = json ?? (fields ? null : "{}");
  const run = useChange({
    send: (call, idempotencyKey) =>
      call(createTask, {
        params: { node_id: node.id },
        body: { type: name, params: text === null ? paramsFrom(fields ?? [], values) : parsed(text) },
        idempotencyKey,
      }),
    onDone: onRun,
  });
  const problems = run.error ? problemOf(run.error).fields : [];
  const atFields = Object.fromEntries(problems.map(({ path, problem }) => [fieldOfPath(path), problem]));
  const choose = (next: string) => {
    setName(next);
    setJson(null);
    run.reset();
    setValues(startingValues(formFieldsOf(types.find((each) => each.type === next)?.params) ?? []));
  };
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Run a task on ${node.name}`}
      description="The server signs the task. The agent runs it only if the signature, type and parameters are valid."
      action="Run task"
      marksFields={
        text === null && problems.every(({ path }) => fields?.some(({ name }) => name === fieldOfPath(path)))
      }
      mutation={run}
    >
      <SelectField
        label="Type"
        value={name}
        onChange={(event) => choose(event.currentTarget.value)}
        hint={type && `${type.summary}. Timeout: ${type.timeout_seconds} s.`}
      >
        {types.map((each) => (
          <option key={each.type} value={each.type} disabled={lacking(each, node)}>
            {each.type}
            {lacking(each, node) ? ` (node lacks ${each.capabilities.join(" or ")})` : ""}
          </option>
        ))}
      </SelectField>
      {text === null ? (
        <SchemaFields
          fields={fields ?? []}
          values={values}
          problems={atFields}
          onChange={(field, value) => setValues({ ...values, [field]: value })}
        />
      ) : (
        <JsonField text={text} onChange={setJson} />
      )}
      {fields && fields.length > 0 && (
        <Button
          look="quiet"
          className="-ml-3.5"
          onClick={() => setJson(json === null ? JSON.stringify(paramsFrom(fields, values), null, 2) : null)}
        >
          {json === null ? "Edit as JSON" : "Edit as a form"}
        </Button>
      )}
    </FormDialog>
  );
}

function JsonField({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const wrong = typeof safelyParsed(text) === "string" ? String(safelyParsed(text)) : undefined;
  return (
    <TextareaField
      label="Parameters"
      mono
      rows={8}
      value={text}
      error={wrong}
      ref={(area) => area?.setCustomValidity(wrong ?? "")}
      onChange={(event) => onChange(event.currentTarget.value)}
      hint="A JSON object. The API reference and GET /v1/task-types have the schema."
    />
  );
}

/** The object, or the error in the text. */
function safelyParsed(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
    return "This is not a JSON object.";
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function parsed(text: string): Record<string, unknown> {
  const value = safelyParsed(text);
  return typeof value === "string" ? {} : value;
}
