// The time per phase of a task: a bar, and the same as text.

import type { PhaseTimings as Timings } from "@holdfast/contracts/node/protocol";
import { classes } from "../../design/controls/classes.ts";
import { tookMs } from "../../design/values/time.ts";

const shades = ["bg-kelp", "bg-buoy", "bg-line-strong", "bg-kelp/50", "bg-buoy/50", "bg-line-strong/50"];
const shadeOf = (index: number) => shades[index % shades.length];

export function PhaseTimings({ timings }: { timings: Timings }) {
  const phases = Object.entries(timings);
  const total = phases.reduce((sum, [, ms]) => sum + ms, 0);
  if (phases.length === 0) return null;
  return (
    <div>
      {total > 0 && phases.length > 1 && (
        <div className="flex h-2 gap-px overflow-hidden rounded-sm" aria-hidden="true">
          {phases.map(([phase, ms], index) => (
            <div key={phase} className={classes("min-w-0.5", shadeOf(index))} style={{ flexGrow: ms / total }} />
          ))}
        </div>
      )}
      <ul className="mt-1.5 flex flex-wrap gap-x-4 gap-y-1 text-sm">
        {phases.map(([phase, ms], index) => (
          <li key={phase} className="inline-flex items-center gap-1.5">
            <span className={classes("size-2 rounded-[2px]", shadeOf(index))} aria-hidden="true" />
            {phase} <span className="font-mono text-ink-muted">{tookMs(ms)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
