// Names and values, a line each.

import type { ReactNode } from "react";
import { classes } from "../controls/classes.ts";

export function Facts({ children, className }: { children: ReactNode; className?: string }) {
  return <dl className={classes("[&>div:last-child]:border-b-0", className)}>{children}</dl>;
}

/** Side by side where there is room, below each other on a narrow screen. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="grid gap-x-4 border-b border-line py-2.5 sm:grid-cols-[8.5rem_minmax(0,1fr)]">
      <dt className="text-ink-muted">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
    </div>
  );
}
