// The node of a cell, with its state and reason.

import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { isReason, reasons } from "@holdfast/contracts/reasons/catalogue";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import { Button } from "../../design/controls/Button.tsx";
import { classes } from "../../design/controls/classes.ts";
import { duration } from "../../design/values/time.ts";
import { useNow } from "../../design/values/use-now.ts";
import { FleetMark } from "./FleetMark.tsx";
import { reasonInWords } from "./words.ts";

const WIDTH = 264;

type CellCardProps = {
  node: PictureNode;
  at: { x: number; y: number };
  roomWidth: number;
  /** Given where there is no pointer to click with. */
  onOpen?: (() => void) | undefined;
};

export function CellCard({ node, at, roomWidth, onOpen }: CellCardProps) {
  const now = useNow("seconds");
  const left = Math.max(0, Math.min(at.x - 12, roomWidth - WIDTH));
  return (
    <div
      className={classes(
        "absolute z-40 rounded-md border border-line bg-surface px-3.5 py-2.5 text-sm shadow-raised",
        !onOpen && "pointer-events-none",
      )}
      style={{ left, top: at.y + 8, width: WIDTH, maxWidth: "100%" }}
    >
      <p className="text-base font-semibold [overflow-wrap:anywhere]">{node.name}</p>
      <p className="mt-0.5 flex flex-wrap items-center gap-x-2">
        <FleetMark state={node.state} />
        {node.since !== null && (
          <span className="text-ink-muted tabular-nums">
            for {duration(Math.max(0, Math.floor((now - node.since) / 1000)))}
          </span>
        )}
      </p>
      <p className="mt-1 text-ink-muted">
        {node.reason && isReason(node.reason)
          ? reasons[node.reason].message
          : (reasonInWords(node) ?? fleetStateTitles[node.state].meaning)}
      </p>
      {(node.version || node.block) && (
        <p className="mt-1 font-mono text-xs text-ink-muted">
          {[node.version && `agent ${node.version}`, node.block].filter(Boolean).join(" · ")}
        </p>
      )}
      {onOpen && (
        <Button className="mt-2 w-full" onClick={onOpen}>
          Open {node.name}
        </Button>
      )}
    </div>
  );
}
