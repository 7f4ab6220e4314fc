// One field of a step in the panel. What is typed goes into the text of the document at once.

import { useState } from "react";
import { parse, stringify } from "yaml";
import { SelectField, TextareaField, TextField } from "../../../design/forms/Field.tsx";
import type { FieldSpec } from "./fields.ts";

type PanelFieldProps = {
  spec: FieldSpec;
  value: unknown;
  readOnly: boolean;
  /** Undefined removes the field. */
  onChange: (value: unknown) => void;
};

export function PanelField({ spec, value, readOnly, onChange }: PanelFieldProps) {
  const common = { label: spec.label, hint: spec.hint, placeholder: spec.placeholder, readOnly };
  const given = (text: string) => onChange(text === "" ? undefined : text);
  switch (spec.kind) {
    case "area":
      return (
        <TextareaField
          {...common}
          mono
          rows={5}
          value={textOf(value)}
          onChange={(event) => given(event.currentTarget.value)}
        />
      );
    case "choice":
      return (
        <SelectField
          label={spec.label}
          hint={spec.hint}
          disabled={readOnly}
          value={textOf(value)}
          onChange={(event) => given(event.currentTarget.value)}
        >
          <option value="">Default ({spec.none})</option>
          {spec.options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </SelectField>
      );
    case "count":
      return (
        <TextField
          {...common}
          type="number"
          min={1}
          max={20}
          value={textOf(value)}
          onChange={(event) => {
            const count = event.currentTarget.valueAsNumber;
            onChange(Number.isNaN(count) ? undefined : count);
          }}
        />
      );
    case "value":
      return <ValueField spec={spec} value={value} readOnly={readOnly} onChange={onChange} />;
    case "text":
      return (
        <TextField
          {...common}
          autoComplete="off"
          spellCheck={false}
          value={textOf(value)}
          onChange={(event) => given(event.currentTarget.value)}
        />
      );
  }
}

const textOf = (value: unknown) => (value === undefined || value === null ? "" : String(value));

/** A value of any shape, as YAML or JSON. While it cannot be read, the document keeps what it had. */
function ValueField({ spec, value, readOnly, onChange }: PanelFieldProps) {
  const stored = value === undefined ? "" : stringify(value, { lineWidth: 0 }).trimEnd();
  const [draft, setDraft] = useState<{ text: string; of: string } | null>(null);
  const [error, setError] = useState<string | undefined>();
  const text = draft?.of === stored ? draft.text : stored;
  return (
    <TextareaField
      label={spec.label}
      hint={spec.hint ?? "As YAML or JSON."}
      placeholder={spec.placeholder}
      error={error}
      mono
      rows={3}
      readOnly={readOnly}
      value={text}
      onChange={(event) => {
        const next = event.currentTarget.value;
        try {
          const read: unknown = next.trim() === "" ? undefined : parse(next);
          setError(undefined);
          const becomes = read === undefined ? "" : stringify(read, { lineWidth: 0 }).trimEnd();
          setDraft({ text: next, of: becomes });
          onChange(read);
        } catch {
          setDraft({ text: next, of: stored });
          setError("This is no YAML and no JSON.");
        }
      }}
    />
  );
}
