// What a wait waits for: a time, an approval or an event.

import { SelectField, TextField } from "../../../design/forms/Field.tsx";

type WaitFieldProps = {
  fields: Record<string, unknown>;
  readOnly: boolean;
  /** Fields that are undefined are removed. */
  onChange: (fields: Record<string, unknown>) => void;
};

const none = { for: undefined, approval: undefined, event: undefined };

export function WaitField({ fields, readOnly, onChange }: WaitFieldProps) {
  const kind = fields["event"] !== undefined ? "event" : fields["approval"] !== undefined ? "approval" : "for";
  const message = (fields["approval"] as { message?: string } | undefined)?.message ?? "";
  return (
    <>
      <SelectField
        label="Waits for"
        value={kind}
        disabled={readOnly}
        onChange={(event) => {
          const begins = { for: "5m", approval: {}, event: "name" } as Record<string, unknown>;
          const next = event.currentTarget.value;
          onChange({ ...none, [next]: begins[next] });
        }}
      >
        <option value="for">A time</option>
        <option value="approval">An approval</option>
        <option value="event">An event</option>
      </SelectField>
      {kind === "approval" ? (
        <TextField
          label="Question"
          value={message}
          readOnly={readOnly}
          placeholder="Deploy to production?"
          onChange={(event) => {
            const text = event.currentTarget.value;
            onChange({ approval: text === "" ? {} : { message: text } });
          }}
        />
      ) : (
        <TextField
          label={kind === "for" ? "Time" : "Name of the event"}
          value={String(fields[kind] ?? "")}
          readOnly={readOnly}
          onChange={(event) => onChange({ [kind]: event.currentTarget.value })}
        />
      )}
    </>
  );
}
