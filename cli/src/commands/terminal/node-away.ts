// Notes that the node does not answer while the gateway does, and when it is back. A connection of the node that breaks
// and returns at once is not worth a line over what the shell shows.

import type { NodeAway } from "@holdfast/contracts/terminal/frames";
import { localTime } from "../../output.ts";
import type { LocalTerminal } from "./local-terminal.ts";

const PATIENCE_MS = 2_000;

/** `redraw`: something was written over what the shell shows. The returned function gets undefined when the node answers. */
export function noteNodeAway(
  local: Pick<LocalTerminal, "note">,
  redraw: () => void,
): (away: { cause: NodeAway; since: string } | undefined) => void {
  let waiting: NodeJS.Timeout | undefined;
  let noted = false;
  return (away) => {
    clearTimeout(waiting);
    if (!away) {
      if (noted) {
        local.note("The node answers again.");
        redraw();
      }
      noted = false;
      return;
    }
    const note = () => {
      noted = true;
      const since = localTime(away.since);
      const what =
        away.cause === "silent"
          ? `the node has not answered since ${since}`
          : `the node lost its connection to the gateway at ${since}`;
      local.note(`Unresponsive: ${what}. The terminal returns when the node does. Enter, then ~. leaves it.`);
    };
    if (away.cause === "silent") note();
    else waiting = setTimeout(note, PATIENCE_MS).unref();
  };
}
