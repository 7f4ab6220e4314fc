// The chain that a terminal comes up by: which steps were reached, after how long, and where it stopped.

import { readinessSteps } from "@holdfast/contracts/terminal-frames";
import { classes } from "../../design/classes.ts";
import { type State, StatusMark } from "../../design/StatusMark.tsx";
import { tookMs } from "../../design/time.ts";
import type { Chain } from "./connecting.ts";
import { stepWords } from "./words.ts";

type ReadinessStepsProps = {
  chain: Chain;
  /** What becomes of the first step that was not reached. */
  next: "awaited" | "failed" | "never";
};

export function ReadinessSteps({ chain, next }: ReadinessStepsProps) {
  const first = readinessSteps.find((step) => chain[step] === undefined);
  const marks: Record<typeof next, State> = { awaited: "moving", failed: "failed", never: "unknown" };
  return (
    <ol aria-label="Readiness chain" className="space-y-1">
      {readinessSteps.map((step) => {
        const ms = chain[step];
        const mark = ms !== undefined ? "ok" : step === first ? marks[next] : "unknown";
        return (
          <li
            key={step}
            data-step={step}
            data-state={mark}
            className={classes("flex items-baseline justify-between gap-4", mark === "unknown" && "opacity-70")}
          >
            <StatusMark state={mark}>
              <span className={classes("font-normal", mark !== "failed" && "text-ink")}>
                {stepWords[step][ms !== undefined ? "reached" : "awaited"]}
              </span>
            </StatusMark>
            <span className="font-mono text-sm whitespace-nowrap text-ink-muted tabular-nums">
              {ms !== undefined ? tookMs(ms) : mark === "failed" ? "stopped" : ""}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
