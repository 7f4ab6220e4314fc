// A titled area of a page.

import { type ReactNode, useId } from "react";
import { classes } from "../controls/classes.ts";

type CardProps = { title: string; note?: ReactNode; children: ReactNode; className?: string };

export function Card({ title, note, children, className }: CardProps) {
  const id = useId();
  return (
    <section aria-labelledby={id} className={classes("rounded-lg border border-line bg-surface", className)}>
      <header className="flex items-baseline justify-between gap-4 border-b border-line px-5 py-3">
        <h2 id={id} className="font-semibold">
          {title}
        </h2>
        {note && <div className="text-sm text-ink-muted">{note}</div>}
      </header>
      {children}
    </section>
  );
}
