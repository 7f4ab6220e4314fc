// The filters of the audit trail.

import { Button } from "../../design/controls/Button.tsx";
import { Checkbox, SelectField } from "../../design/forms/Field.tsx";
import { SettlingField } from "../../design/forms/SettlingField.tsx";
import { type AuditFilters, isFiltered, type Range } from "./filters.ts";
import { resultMarks } from "./result-marks.ts";

type AuditFilterBarProps = {
  filters: AuditFilters;
  onChange: (filters: AuditFilters) => void;
  offersPlatform: boolean;
};

const rangeNames: Record<Range, string> = {
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
};

export function AuditFilterBar({ filters, onChange, offersPlatform }: AuditFilterBarProps) {
  const text = (name: "actor" | "action" | "target" | "correlation_id") => ({
    value: filters[name] ?? "",
    onSettle: (value: string) => onChange({ ...filters, [name]: value || undefined }),
  });
  return (
    <search className="mb-5 block" aria-label="Filter audit events">
      <div className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
        <SettlingField label="Actor" placeholder="Name or id" {...text("actor")} />
        <SettlingField label="Action" placeholder="token.create" {...text("action")} />
        <SettlingField label="Target" placeholder="Name or id" {...text("target")} />
        <SelectField
          label="Result"
          value={filters.result ?? ""}
          onChange={(event) =>
            onChange({ ...filters, result: (event.currentTarget.value || undefined) as AuditFilters["result"] })
          }
        >
          <option value="">Any</option>
          {Object.entries(resultMarks).map(([result, { word }]) => (
            <option key={result} value={result}>
              {word}
            </option>
          ))}
        </SelectField>
        <SettlingField label="Correlation id" {...text("correlation_id")} />
        <SelectField
          label="Time"
          value={filters.range ?? ""}
          onChange={(event) =>
            onChange({ ...filters, range: (event.currentTarget.value || undefined) as AuditFilters["range"] })
          }
        >
          <option value="">Any time</option>
          {Object.entries(rangeNames).map(([range, name]) => (
            <option key={range} value={range}>
              {name}
            </option>
          ))}
        </SelectField>
      </div>
      <div className="mt-3 flex min-h-9 flex-wrap items-center gap-x-6 gap-y-2">
        {offersPlatform && (
          <Checkbox
            label="All organizations"
            checked={filters.scope === "platform"}
            onChange={(event) =>
              onChange({ ...filters, scope: event.currentTarget.checked ? "platform" : undefined })
            }
          />
        )}
        {isFiltered(filters) && (
          <Button look="quiet" onClick={() => onChange({ scope: filters.scope })}>
            Clear filters
          </Button>
        )}
      </div>
    </search>
  );
}
