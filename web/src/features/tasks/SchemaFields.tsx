// The controls of a task type's parameters.

import { Checkbox, SelectField, TextareaField, TextField } from "../../design/forms/Field.tsx";
import type { FormField, FormValues } from "./task-form.ts";

type SchemaFieldsProps = {
  fields: readonly FormField[];
  values: FormValues;
  /** What the server said, by the field's name. */
  problems: Record<string, string>;
  onChange: (name: string, value: string | boolean) => void;
};

export function SchemaFields({ fields, values, problems, onChange }: SchemaFieldsProps) {
  if (fields.length === 0) return <p className="text-ink-muted">This type has no parameters.</p>;
  return fields.map((field) => (
    <Control
      key={field.name}
      field={field}
      value={values[field.name] ?? field.fallback}
      problem={problems[field.name]}
      onChange={(value) => onChange(field.name, value)}
    />
  ));
}

type ControlProps = {
  field: FormField;
  value: string | boolean;
  problem?: string;
  onChange: (value: string | boolean) => void;
};

function Control({ field, value, problem, onChange }: ControlProps) {
  const label = inWords(field.name);
  const described = {
    label,
    hint: field.hint,
    error: problem,
    optional: !field.required && field.fallback === "",
  };
  const text = { value: String(value), name: field.name, required: field.required };
  switch (field.kind) {
    case "checkbox":
      return (
        <Checkbox
          label={label}
          hint={field.hint}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case "choice":
      return (
        <SelectField {...described} {...text} onChange={(event) => onChange(event.currentTarget.value)}>
          {!field.required && field.fallback === "" && <option value="">Default</option>}
          {field.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </SelectField>
      );
    case "lines":
      return (
        <TextareaField
          {...described}
          {...text}
          hint={`One per line. ${field.hint}`}
          rows={4}
          mono
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "number":
      return (
        <TextField
          {...described}
          {...text}
          type="number"
          min={field.min}
          max={field.max}
          step={field.integer ? 1 : "any"}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "text":
      return (
        <TextField
          {...described}
          {...text}
          maxLength={field.maxLength}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
  }
}

/** `hold_ms` → `Hold ms`. */
function inWords(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
