// Filters for the list of nodes: a search text, and the values that occur in this fleet.

import { type Fleet, fleetStates } from "@holdfast/contracts/endpoints/fleet";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import { Button } from "../../design/controls/Button.tsx";
import { SelectField } from "../../design/forms/Field.tsx";
import { SettlingField } from "../../design/forms/SettlingField.tsx";
import { count } from "../fleet/words.ts";
import { isNarrowed, type NodeFilters } from "./filters.ts";

type NodeFilterBarProps = { fleet: Fleet; filters: NodeFilters; onChange: (filters: NodeFilters) => void };

export function NodeFilterBar({ fleet, filters, onChange }: NodeFilterBarProps) {
  const choose = (name: "attention" | "version" | "capability") => (value: string | undefined) =>
    onChange({ ...filters, [name]: value });
  return (
    <search className="mb-4 grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap" aria-label="Filter nodes">
      <SettlingField
        label="Search"
        placeholder="Name, address or id"
        value={filters.search ?? ""}
        onSettle={(search) => onChange({ ...filters, search: search || undefined })}
        className="col-span-2 sm:w-64"
      />
      <SelectField
        label="State"
        value={filters.state ?? ""}
        onChange={(event) =>
          onChange({ ...filters, state: (event.currentTarget.value || undefined) as NodeFilters["state"] })
        }
        className="sm:w-44"
      >
        <option value="">All but retired</option>
        <option value="not_fine">Unhealthy</option>
        {fleetStates.map((state) => (
          <option key={state} value={state}>
            {fleetStateTitles[state].title}
          </option>
        ))}
        <option value="retired">Retired</option>
      </SelectField>
      <Choice
        label="Reason"
        value={filters.attention}
        onChoose={choose("attention")}
        options={fleet.troubles.map(({ code, title, count }) => ({ value: code, word: title, count }))}
      />
      <Choice
        label="Agent version"
        value={filters.version}
        onChoose={choose("version")}
        options={fleet.versions.map(({ value, count }) => ({ value, word: value, count }))}
      />
      <Choice
        label="Capability"
        value={filters.capability}
        onChoose={choose("capability")}
        options={fleet.capabilities.map(({ value, count }) => ({ value, word: value, count }))}
      />
      {filters.block && (
        <Button
          onClick={() => onChange({ ...filters, block: undefined })}
          aria-label={`Remove the filter: only ${filters.block}`}
        >
          Only {filters.block} <span aria-hidden="true">×</span>
        </Button>
      )}
      {isNarrowed(filters) && (
        <Button look="quiet" onClick={() => onChange(filters.group ? { group: filters.group } : {})}>
          Clear filters
        </Button>
      )}
    </search>
  );
}

type ChoiceProps = {
  label: string;
  value: string | undefined;
  onChoose: (value: string | undefined) => void;
  options: { value: string; word: string; count: number }[];
};

/** A filter from a link stays visible, even if no node matches it any more. */
function Choice({ label, value, onChoose, options }: ChoiceProps) {
  const gone = value !== undefined && !options.some((option) => option.value === value);
  if (options.length < 2 && value === undefined) return null;
  return (
    <SelectField
      label={label}
      value={value ?? ""}
      onChange={(event) => onChoose(event.currentTarget.value || undefined)}
      className="sm:w-48"
    >
      <option value="">Any</option>
      {gone && <option value={value}>{value}</option>}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.word} ({count(option.count)})
        </option>
      ))}
    </SelectField>
  );
}
