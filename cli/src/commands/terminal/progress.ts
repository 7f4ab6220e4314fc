// While a terminal comes up: one line on stderr that says which step of the chain is under way. Only for
// a person who watches; it is removed when the shell is ready.

import { type ReadinessStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import { readinessStepTitles, terminalConnectionTitles } from "@holdfast/contracts/words/state-titles";
import { span } from "../../output.ts";
import type { Screen } from "../../up/terminal.ts";

export type Progress = { reached(step: ReadinessStep): void; clear(): void };

/** The step that is awaited, or the last one once all are reached. */
function doingAfter(furthest: number): string {
  const next = readinessSteps[furthest + 1];
  const words = next ? readinessStepTitles[next].awaited : readinessStepTitles.pty_ready.reached;
  return words.charAt(0).toLowerCase() + words.slice(1);
}

export function showProgress(target: string, screen: Screen): Progress {
  const shown = screen.isTTY === true;
  const begun = performance.now();
  const write = (text: string) => {
    if (shown) screen.write(`\r\x1b[2K${text}`);
  };
  let furthest = -1;
  const line = () => {
    const after = span(performance.now() - begun);
    write(
      `${terminalConnectionTitles.connecting.title} to ${target}: ${doingAfter(furthest)} … (${furthest + 1} of ${readinessSteps.length}, ${after})`,
    );
  };
  line();
  return {
    reached(step) {
      furthest = Math.max(furthest, readinessSteps.indexOf(step));
      line();
    },
    clear: () => write(""),
  };
}
