// A value of any shape, for reading: objects as names and values, lists of alike objects as a table,
// short lists in a line. The JSON itself is a click away.

import { CopyIconButton } from "./Copy.tsx";
import { columnsOf, inUnit, isShort, nameInWords } from "./structure.ts";

export function Structured({ value, label }: { value: unknown; label: string }) {
  return (
    <div className="relative rounded-md bg-sunken py-2 pr-10 pl-3">
      <Value value={value} />
      <span className="absolute top-2 right-2">
        <CopyIconButton text={JSON.stringify(value, null, 2)} label={`Copy ${label} as JSON`} />
      </span>
    </div>
  );
}

function Value({ value }: { value: unknown }) {
  if (Array.isArray(value)) return <List items={value} />;
  if (typeof value === "object" && value !== null) return <Entries value={value} />;
  if (value === null || value === undefined) return <span className="text-ink-muted">none</span>;
  if (value === "") return <span className="text-ink-muted">empty</span>;
  return (
    <span className="font-mono text-sm [overflow-wrap:anywhere] whitespace-pre-wrap">
      {typeof value === "boolean" ? (value ? "yes" : "no") : String(value)}
    </span>
  );
}

function Entries({ value }: { value: object }) {
  const entries = Object.entries(value);
  if (entries.length === 0) return <span className="text-ink-muted">none</span>;
  return (
    <dl className="space-y-1">
      {entries.map(([name, each]) => (
        <div key={name} className={isShort(each) ? "flex flex-wrap items-baseline gap-x-3" : undefined}>
          <dt className="text-sm text-ink-muted">{nameInWords(name)}</dt>
          <dd className={isShort(each) ? "min-w-0" : "mt-0.5 ml-1 border-l border-line pl-3"}>
            <Value value={inUnit(name, each)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function List({ items }: { items: unknown[] }) {
  if (items.length === 0) return <span className="text-ink-muted">none</span>;
  if (items.every(isShort))
    return <span className="font-mono text-sm [overflow-wrap:anywhere]">{items.map(String).join(", ")}</span>;
  const columns = columnsOf(items);
  if (columns) return <Grid rows={items as Record<string, unknown>[]} columns={columns} />;
  return (
    <ul className="space-y-1.5 [&>li+li]:border-t [&>li+li]:border-line [&>li+li]:pt-1.5">
      {items.map((each, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: items of a stored value never change places
        <li key={index}>
          <Value value={each} />
        </li>
      ))}
    </ul>
  );
}

function Grid({ rows, columns }: { rows: Record<string, unknown>[]; columns: string[] }) {
  return (
    <div className="overflow-x-auto">
      <table className="text-left">
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col" className="pr-5 text-sm font-normal whitespace-nowrap text-ink-muted">
                {nameInWords(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: items of a stored value never change places
            <tr key={index}>
              {columns.map((name) => (
                <td key={name} className="py-px pr-5 align-top">
                  <Value value={inUnit(name, row[name])} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
