// Where a step runs: in the worker, or on an agent, chosen by tag, group or id.

import { SelectField, TextField } from "../../../design/forms/Field.tsx";

type Execution = { mode?: string; selector?: Record<string, string> };
type AgentFieldProps = {
  type: string;
  value: unknown;
  readOnly: boolean;
  onChange: (execution: Execution | undefined) => void;
};

const kinds = { tag: "Agents with a tag", group: "Agents of a group", agentId: "One agent, by id" } as const;

export function AgentField({ type, value, readOnly, onChange }: AgentFieldProps) {
  const execution = (typeof value === "object" && value !== null ? value : {}) as Execution;
  const onAgent = type === "agent.execute" || execution.mode === "node";
  const [kind, name = ""] = Object.entries(execution.selector ?? {})[0] ?? [];
  const chosen = onAgent ? (kind ?? "any") : "cloud";
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <SelectField
        label="Runs on"
        value={chosen}
        disabled={readOnly}
        onChange={(event) => {
          const next = event.currentTarget.value;
          if (next === "cloud") onChange(undefined);
          else if (next === "any") onChange(type === "agent.execute" ? undefined : { mode: "node" });
          else onChange({ mode: "node", selector: { [next]: name } });
        }}
      >
        {type !== "agent.execute" && <option value="cloud">The worker</option>}
        <option value="any">Any agent</option>
        {Object.entries(kinds).map(([one, label]) => (
          <option key={one} value={one}>
            {label}
          </option>
        ))}
      </SelectField>
      {kind !== undefined && (
        <TextField
          label={kind === "agentId" ? "Agent id" : kind === "tag" ? "Tag" : "Group"}
          value={name}
          readOnly={readOnly}
          autoComplete="off"
          onChange={(event) => onChange({ mode: "node", selector: { [kind]: event.currentTarget.value } })}
        />
      )}
    </div>
  );
}
