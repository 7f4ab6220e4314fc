// The readiness chain of a terminal: which steps were reached, after how long, and where it stopped.

import { type ReadinessStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import { readinessStepTitles } from "@holdfast/contracts/words/state-titles";
import type { Chain } from "@holdfast/terminal-client/states";
import { classes } from "../../design/controls/classes.ts";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs } from "../../design/values/time.ts";
import { stoppedAt } from "./chain.ts";

type ReadinessStepsProps = {
  chain: Chain;
  /** What becomes of the first step that was not reached, or of the one at the hop that failed. */
  next: "awaited" | "never" | { failedAt: string };
};

export function ReadinessSteps({ chain, next }: ReadinessStepsProps) {
  const { step: marked, mark: itsMark } = stopOf(chain, next);
  return (
    <ol aria-label="Readiness chain" className="space-y-1">
      {readinessSteps.map((step) => {
        const ms = chain[step];
        const mark = ms !== undefined ? "ok" : step === marked ? itsMark : "unknown";
        return (
          <li
            key={step}
            data-step={step}
            data-state={mark}
            className={classes("flex items-baseline justify-between gap-4", mark === "unknown" && "opacity-70")}
          >
            <StatusMark state={mark}>
              <span className={classes("font-normal", mark !== "failed" && "text-ink")}>
                {readinessStepTitles[step][ms !== undefined ? "reached" : "awaited"]}
              </span>
            </StatusMark>
            <span className="font-mono text-sm whitespace-nowrap text-ink-muted tabular-nums">
              {ms !== undefined ? tookMs(ms) : mark === "failed" ? "stopped" : ""}
            </span>
          </li>
        );
      })}
      {chain.failed !== undefined && (
        <li data-step="failed" data-state="failed" className="flex items-baseline justify-between gap-4">
          <StatusMark state="failed">
            <span className="font-normal">Failed</span>
          </StatusMark>
          <span className="font-mono text-sm whitespace-nowrap text-ink-muted tabular-nums">
            {tookMs(chain.failed)}
          </span>
        </li>
      )}
    </ol>
  );
}

function stopOf(
  chain: Chain,
  next: ReadinessStepsProps["next"],
): { step: ReadinessStep | undefined; mark: State } {
  const first = readinessSteps.find((step) => chain[step] === undefined);
  if (next === "awaited") return { step: first, mark: "moving" };
  if (next === "never") return { step: first, mark: "unknown" };
  return { step: stoppedAt(chain, next.failedAt), mark: "failed" };
}
