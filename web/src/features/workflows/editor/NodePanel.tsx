// The fields of the selected step. Every change is one of the document's text.

import { nodeIdForm } from "@holdfast/workflows/document/schema";
import { useState } from "react";
import { Button } from "../../../design/controls/Button.tsx";
import { SelectField, TextField } from "../../../design/forms/Field.tsx";
import { Card } from "../../../design/layout/Card.tsx";
import { connect, disconnect, fieldsOf, removeNode, renameNode, setField } from "../document/edit.ts";
import type { OutlineNode } from "../document/outline.ts";
import { isNodeType, nodeTypes, typeWords } from "../graph/words.ts";
import { AgentField } from "./AgentField.tsx";
import { EdgeFields } from "./EdgeFields.tsx";
import { fieldSpecs, runsOnAgents } from "./fields.ts";
import { newNodes } from "./new-nodes.ts";
import { PanelField } from "./PanelField.tsx";
import { WaitField } from "./WaitField.tsx";

type NodePanelProps = {
  id: string;
  text: string;
  nodes: readonly OutlineNode[];
  readOnly: boolean;
  onChange: (text: string) => void;
  onSelect: (id: string | null) => void;
  /** Absent while the document has problems, and where there is nothing to test. */
  onTest?: (() => void) | undefined;
};

export function NodePanel({ id, text, nodes, readOnly, onChange, onSelect, onTest }: NodePanelProps) {
  const fields = fieldsOf(text, id);
  if (!fields) return null;
  const type = String(fields["type"] ?? "");
  const set = (path: readonly string[], value: unknown) => onChange(setField(text, ["nodes", id, ...path], value));
  return (
    <Card
      title={`Step ${id}`}
      note={
        !readOnly && (
          <span className="flex gap-2">
            {onTest && <Button onClick={onTest}>Test step</Button>}
            <Button
              onClick={() => {
                onChange(removeNode(text, id));
                onSelect(null);
              }}
            >
              Remove step
            </Button>
          </span>
        )
      }
    >
      <div className="space-y-4 px-5 py-4">
        <div className="grid gap-3 sm:grid-cols-2">
          <IdField
            key={id}
            id={id}
            taken={nodes.map((node) => node.id)}
            readOnly={readOnly}
            onRename={(to) => {
              onChange(renameNode(text, id, to));
              onSelect(to);
            }}
          />
          <SelectField
            label="Type"
            value={type}
            disabled={readOnly}
            onChange={(event) => onChange(setType(text, id, event.currentTarget.value))}
          >
            {!isNodeType(type) && <option value={type}>{type || "None"}</option>}
            {nodeTypes.map((one) => (
              <option key={one} value={one}>
                {typeWords[one]}
              </option>
            ))}
          </SelectField>
        </div>
        <PanelField
          spec={{ kind: "text", path: ["title"], label: "Title", placeholder: id }}
          value={fields["title"]}
          readOnly={readOnly}
          onChange={(value) => set(["title"], value)}
        />
        <EdgeFields
          id={id}
          nodes={nodes}
          readOnly={readOnly}
          onConnect={(edge) => onChange(connect(text, edge))}
          onDisconnect={(edge) => onChange(disconnect(text, edge))}
        />
        {runsOnAgents(type) && (
          <AgentField
            type={type}
            value={fields["execution"]}
            readOnly={readOnly}
            onChange={(value) => set(["execution"], value)}
          />
        )}
        {type === "wait" && (
          <WaitField
            fields={fields}
            readOnly={readOnly}
            onChange={(values) =>
              onChange(
                Object.entries(values).reduce(
                  (all, [key, value]) => setField(all, ["nodes", id, key], value),
                  text,
                ),
              )
            }
          />
        )}
        {isNodeType(type) &&
          fieldSpecs[type].map((spec) => (
            <PanelField
              key={spec.path.join(".")}
              spec={spec}
              value={valueAt(fields, spec.path)}
              readOnly={readOnly}
              onChange={(value) => set(withoutEmptyParent(spec.path, value), value)}
            />
          ))}
      </div>
    </Card>
  );
}

/** `retry` without `attempts` is nothing: it goes with its field. */
const withoutEmptyParent = (path: readonly string[], value: unknown) =>
  value === undefined && path[0] === "retry" ? ["retry"] : path;

function valueAt(fields: Record<string, unknown>, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], fields);
}

/** What belongs to the type before is replaced by what the new one begins with; title and edges stay. */
function setType(text: string, id: string, type: string): string {
  if (!isNodeType(type)) return text;
  const before = Object.keys(fieldsOf(text, id) ?? {}).filter((key) => !["title", "after", "type"].includes(key));
  const bare = before.reduce((all, key) => setField(all, ["nodes", id, key], undefined), text);
  return Object.entries(newNodes[type]).reduce(
    (all, [key, value]) => setField(all, ["nodes", id, key], value),
    bare,
  );
}

type IdFieldProps = { id: string; taken: readonly string[]; readOnly: boolean; onRename: (to: string) => void };

/** Takes effect when one leaves it: every letter between would be another node. */
function IdField({ id, taken, readOnly, onRename }: IdFieldProps) {
  const [draft, setDraft] = useState(id);
  const error = !nodeIdForm.test(draft)
    ? "Lower-case letters, digits, hyphens and underscores, starting with a letter."
    : draft !== id && taken.includes(draft)
      ? "Another step has this id."
      : undefined;
  const rename = () => {
    if (error === undefined && draft !== id) onRename(draft);
  };
  return (
    <TextField
      label="Id"
      value={draft}
      error={error}
      readOnly={readOnly}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => setDraft(event.currentTarget.value)}
      onBlur={rename}
      onKeyDown={(event) => event.key === "Enter" && rename()}
    />
  );
}
