// A table in a frame that scrolls sideways on narrow screens, and that the keyboard
// can reach and scroll.

import type { ComponentProps, ReactNode } from "react";
import { classes } from "../controls/classes.ts";

type Column = ReactNode | { wide: ReactNode };
type TableProps = { label: string; columns: Column[]; children: ReactNode; className?: string };

/** Of what a narrow screen can do without: on the cell, and `{ wide: … }` on the column. */
export const wideOnly = "hidden md:table-cell";

export function Table({ label, columns, children, className }: TableProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section would need a heading of its own
    <div
      role="region"
      aria-label={`${label} table`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
      tabIndex={0}
      className={classes("relative overflow-x-auto rounded-lg border border-line bg-surface", className)}
    >
      <table className="w-full border-collapse text-left">
        <caption className="sr-only">{label}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of one table never move
                key={index}
                scope="col"
                className={classes(
                  "border-b border-line px-4 max-sm:px-3 py-2 text-xs font-medium whitespace-nowrap text-ink-muted",
                  isWide(column) && wideOnly,
                )}
              >
                {isWide(column) ? column.wide : column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="[&>tr:last-child>td]:border-b-0">{children}</tbody>
      </table>
    </div>
  );
}

function isWide(column: Column): column is { wide: ReactNode } {
  return typeof column === "object" && column !== null && "wide" in column;
}

export function Cell({ className, ...rest }: ComponentProps<"td">) {
  return (
    <td {...rest} className={classes("h-11 border-b border-line px-4 py-2 align-middle max-sm:px-3", className)} />
  );
}

/** For the column of row actions, whose header is for screen readers only. */
export function ActionsHeader() {
  return <span className="sr-only">Actions</span>;
}
