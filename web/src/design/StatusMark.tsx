// A state as shape, word and colour, so that none of the three has to be seen alone: a disc is well,
// a triangle needs attention, a square has failed, a ring is not known, a bar was ended on purpose.

import type { ReactNode } from "react";
import { classes } from "./classes.ts";

export type State = "ok" | "degraded" | "failed" | "unknown" | "ended";

const looks: Record<State, { colour: string; shape: ReactNode }> = {
  ok: { colour: "text-ok", shape: <circle cx="6" cy="6" r="4.5" fill="currentColor" /> },
  degraded: { colour: "text-degraded", shape: <path d="M6 .8 11.6 11H.4z" fill="currentColor" /> },
  failed: { colour: "text-failed", shape: <path d="M1.5 1.5h9v9h-9z" fill="currentColor" /> },
  unknown: {
    colour: "text-ink-muted",
    shape: <circle cx="6" cy="6" r="3.75" fill="none" stroke="currentColor" strokeWidth="1.5" />,
  },
  ended: { colour: "text-ink-muted", shape: <path d="M1 4.5h10v3H1z" fill="currentColor" /> },
};

export function StatusMark({ state, children }: { state: State; children: ReactNode }) {
  const { colour, shape } = looks[state];
  return (
    <span className={classes("inline-flex items-center gap-1.5 self-start font-medium whitespace-nowrap", colour)}>
      <svg viewBox="0 0 12 12" className="size-3 shrink-0" aria-hidden="true">
        {shape}
      </svg>
      {children}
    </span>
  );
}
