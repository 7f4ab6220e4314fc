// The newest runs of a workflow, a bar each: colour and shape are the state, the height is how long it took.

import type { RecentRun } from "@holdfast/contracts/endpoints/recent-runs";
import type { RunState } from "@holdfast/contracts/endpoints/runs";
import { serverNow } from "../../clock.ts";
import { runMarks } from "../runs/run-marks.ts";
import { barsOf, HIGHEST, inWords } from "./sparkline.ts";

const WIDTH = 5;
const STEP = 7;
const MOST = 20;

/** Those that did not succeed differ in form too: hollow is under way or was ended, a full cap is a failure. */
const looks: Record<RunState, string> = {
  queued: "fill-transparent stroke-ink-muted",
  running: "fill-kelp-soft stroke-kelp",
  succeeded: "fill-ok stroke-ok",
  failed: "fill-failed stroke-failed",
  cancelled: "fill-transparent stroke-ink-muted",
};

export function Sparkline({ runs }: { runs: readonly RecentRun[] }) {
  const bars = barsOf(runs, serverNow());
  if (bars.length === 0) return <span className="text-ink-muted">No runs yet</span>;
  return (
    <svg
      role="img"
      aria-label={inWords(runs, (status) => runMarks[status].word)}
      viewBox={`0 0 ${MOST * STEP} ${HIGHEST + 6}`}
      width={MOST * STEP}
      height={HIGHEST + 6}
      className="shrink-0"
    >
      {bars.map(({ id, status, height }, index) => {
        const x = index * STEP + 1;
        return (
          <g key={id} className={looks[status]}>
            <rect x={x} y={HIGHEST + 5 - height} width={WIDTH - 1} height={height - 1} rx="1" />
            {status === "failed" && <rect x={x} y={0.5} width={WIDTH - 1} height={2} stroke="none" />}
          </g>
        );
      })}
    </svg>
  );
}
