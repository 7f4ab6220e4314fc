// A node's state as its cell in the picture shows it: recognizable by shape, without colour.

import type { FleetState } from "@holdfast/contracts/endpoints/fleet";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import type { ReactNode } from "react";
import { classes } from "../../design/controls/classes.ts";

const looks: Record<FleetState, { colour: string; shape: ReactNode }> = {
  silent: { colour: "text-failed", shape: <path d="M.5.5h11v11H.5z" fill="currentColor" /> },
  troubled: { colour: "text-degraded", shape: <path d="M6 .8 11.6 11H.4z" fill="currentColor" /> },
  fenced: {
    colour: "text-ink",
    shape: <path d="M1.5 1.5h9v9h-9zM1.5 10.5l9-9" fill="none" stroke="currentColor" strokeWidth="1.6" />,
  },
  draining: { colour: "text-kelp", shape: <path d="M.5 4h11v4H.5z" fill="currentColor" /> },
  joining: {
    colour: "text-kelp",
    shape: <circle cx="6" cy="6" r="4.4" fill="none" stroke="currentColor" strokeWidth="1.6" />,
  },
  fine: { colour: "text-ok", shape: <circle cx="6" cy="6" r="4" fill="currentColor" /> },
};

export function FleetShape({ state, className }: { state: FleetState; className?: string }) {
  const { colour, shape } = looks[state];
  return (
    <svg viewBox="0 0 12 12" className={classes("size-3 shrink-0", colour, className)} aria-hidden="true">
      {shape}
    </svg>
  );
}

export function FleetMark({ state }: { state: FleetState }) {
  return (
    <span
      className={classes("inline-flex items-center gap-1.5 font-medium whitespace-nowrap", looks[state].colour)}
    >
      <FleetShape state={state} />
      {fleetStateTitles[state].title}
    </span>
  );
}
