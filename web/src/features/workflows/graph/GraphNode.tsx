// One node of the graph: what it is, its state in a run, and the ports from which one can draw edges.

import type { Port } from "@holdfast/workflows/document/schema";
import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { Fragment } from "react";
import { classes } from "../../../design/controls/classes.ts";
import type { Mark } from "../../../design/values/marks.ts";
import { type State, StatusMark } from "../../../design/values/StatusMark.tsx";
import { wordForType } from "./words.ts";

export type NodeState = { mark: Mark; note?: string };

export type ShownNode = Node<{
  id: string;
  title: string | undefined;
  type: string;
  editable: boolean;
  state: NodeState | undefined;
  wrong: boolean;
  ports: readonly Port[];
  /** Those that an edge follows. */
  used: ReadonlySet<Port>;
}>;

export function GraphNode({ data, selected }: NodeProps<ShownNode>) {
  const { id, title, type, state, wrong, ports, used, editable } = data;
  return (
    <div
      className={classes(
        "flex h-full w-full flex-col justify-center rounded-md border px-3 py-1.5 text-left",
        wrong ? "border-failed" : selected ? "border-kelp" : "border-line-strong",
        selected && "shadow-[0_0_0_2px_var(--kelp)]",
        (state && backgrounds[state.mark.state]) ?? "bg-surface",
      )}
    >
      <Handle type="target" position={Position.Top} isConnectable={editable} className={handleClasses(editable)} />
      <span className="truncate font-medium">{title ?? id}</span>
      {state ? (
        <span className="flex items-baseline justify-between gap-2 text-sm text-ink">
          <StatusMark state={state.mark.state}>{state.mark.word}</StatusMark>
          {state.note && <span className="truncate tabular-nums">{state.note}</span>}
        </span>
      ) : (
        <span className="flex items-baseline justify-between gap-2 text-sm text-ink-muted">
          <span className="truncate">{wordForType(type)}</span>
          {wrong && <StatusMark state="failed">Problem</StatusMark>}
        </span>
      )}
      {ports.map((port, index) => (
        <Fragment key={port}>
          {port !== "succeeded" && (editable || used.has(port)) && (
            <span
              aria-hidden="true"
              className="absolute top-full mt-1 ml-2 text-xs text-ink-muted"
              style={{ left: placeOf(index, ports) }}
            >
              {port}
            </span>
          )}
          <Handle
            id={port}
            type="source"
            position={Position.Bottom}
            isConnectable={editable}
            style={{ left: placeOf(index, ports) }}
            className={classes(handleClasses(editable), port === "failed" && "handle-failed")}
          />
        </Fragment>
      ))}
    </div>
  );
}

const placeOf = (index: number, { length }: readonly Port[]) => `${((index + 1) * 100) / (length + 1)}%`;

const backgrounds: Partial<Record<State, string>> = {
  failed: "bg-failed-soft",
  degraded: "bg-degraded-soft",
  ok: "bg-ok-soft",
  ended: "bg-sunken",
};

const handleClasses = (editable: boolean) => (editable ? "handle" : "handle-hidden");
