// The filters above a list: fields in one line, and a button that clears them while one is set.

import type { ReactNode } from "react";
import { Button } from "../controls/Button.tsx";
import { SelectField } from "../forms/Field.tsx";

type FilterLineProps<Filters extends object> = {
  filters: Filters;
  onChange: (filters: Filters) => void;
  children: ReactNode;
};

export function FilterLine<Filters extends object>({ filters, onChange, children }: FilterLineProps<Filters>) {
  return (
    <div className="mb-4 flex flex-wrap items-end gap-3">
      {children}
      {isFiltered(filters) && (
        <Button look="quiet" onClick={() => onChange({} as Filters)}>
          Clear filters
        </Button>
      )}
    </div>
  );
}

export const isFiltered = (filters: object) => Object.values(filters).some((value) => value !== undefined);

type ChoiceFilterProps<Value extends string> = {
  label: string;
  value: Value | undefined;
  /** Undefined: all. */
  onChoose: (value: Value | undefined) => void;
  choices: readonly (readonly [value: Value, title: string])[];
};

/** A value from a link stays visible, also if it is none of the choices. */
export function ChoiceFilter<Value extends string>({ label, value, onChoose, choices }: ChoiceFilterProps<Value>) {
  const unknown = value !== undefined && !choices.some(([one]) => one === value);
  return (
    <SelectField
      label={label}
      value={value ?? ""}
      className="max-w-full"
      onChange={(event) => onChoose((event.currentTarget.value || undefined) as Value | undefined)}
    >
      <option value="">All</option>
      {unknown && <option value={value}>{value}</option>}
      {choices.map(([one, title]) => (
        <option key={one} value={one}>
          {title}
        </option>
      ))}
    </SelectField>
  );
}
