// While a terminal comes up: one line on stderr that says which step of the chain is under way. Only for
// a person who watches; it is gone when the shell is there.

import { type ReadinessStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import { span } from "../../output.ts";
import type { Screen } from "../../up/terminal.ts";

export type Progress = { reached(step: ReadinessStep): void; clear(): void };

/** What is being waited for once the step is reached. */
const waitingFor: Record<ReadinessStep, string> = {
  token_ready: "reaching the gateway",
  browser_ws_ready: "asking the node",
  terminal_open_sent: "waiting for the node's stream",
  node_stream_connected: "starting the shell",
  pty_ready: "the shell is there",
};

export function showProgress(target: string, screen: Screen): Progress {
  const shown = screen.isTTY === true;
  const begun = performance.now();
  const write = (text: string) => {
    if (shown) screen.write(`\r\x1b[2K${text}`);
  };
  let furthest = -1;
  const line = (doing: string) => {
    const after = span(performance.now() - begun);
    write(`Connecting to ${target}: ${doing} … (${furthest + 1} of ${readinessSteps.length}, ${after})`);
  };
  line("asking for permission");
  return {
    reached(step) {
      furthest = Math.max(furthest, readinessSteps.indexOf(step));
      line(waitingFor[step]);
    },
    clear: () => write(""),
  };
}
