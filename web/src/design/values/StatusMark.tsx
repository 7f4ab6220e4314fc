// A state as shape, word and colour, so that none of the three has to be seen alone: a disc is well,
// a triangle needs attention, a square has failed, a ring is not known, a bar was ended on purpose,
// a half-filled ring is under way.

import type { ReactNode } from "react";
import { classes } from "../controls/classes.ts";

export type State = "ok" | "degraded" | "failed" | "unknown" | "ended" | "moving";

const looks: Record<State, { colour: string; shape: ReactNode }> = {
  ok: { colour: "text-ok", shape: <circle cx="6" cy="6" r="4.5" fill="currentColor" /> },
  degraded: { colour: "text-degraded", shape: <path d="M6 .8 11.6 11H.4z" fill="currentColor" /> },
  failed: { colour: "text-failed", shape: <path d="M1.5 1.5h9v9h-9z" fill="currentColor" /> },
  unknown: {
    colour: "text-ink-muted",
    shape: <circle cx="6" cy="6" r="3.75" fill="none" stroke="currentColor" strokeWidth="1.5" />,
  },
  ended: { colour: "text-ink-muted", shape: <path d="M1 4.5h10v3H1z" fill="currentColor" /> },
  moving: {
    colour: "text-kelp",
    shape: (
      <>
        <circle cx="6" cy="6" r="4.25" fill="none" stroke="currentColor" strokeWidth="1.5" />
        <path d="M6 1.75a4.25 4.25 0 0 1 0 8.5z" fill="currentColor" />
      </>
    ),
  },
};

type StatusMarkProps = {
  state: State;
  children: ReactNode;
  /** A sentence instead of a word: it may need several lines. */
  long?: boolean;
};

export function StatusMark({ state, children, long }: StatusMarkProps) {
  const { colour, shape } = looks[state];
  return (
    <span
      className={classes(
        "inline-flex gap-1.5 self-start font-medium",
        long ? "items-start" : "items-center whitespace-nowrap",
        colour,
      )}
    >
      <svg
        viewBox="0 0 12 12"
        className={classes(
          "size-3 shrink-0",
          long && "mt-[5px]",
          state === "moving" && "animate-[spin_2.4s_linear_infinite]",
        )}
        aria-hidden="true"
      >
        {shape}
      </svg>
      {children}
    </span>
  );
}
