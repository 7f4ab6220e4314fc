// One node of the graph: what it is, its state in a run, and the ports from which one can draw edges.

import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { classes } from "../../../design/controls/classes.ts";
import type { Mark } from "../../../design/values/marks.ts";
import { StatusMark } from "../../../design/values/StatusMark.tsx";
import { wordForType } from "./words.ts";

export type NodeState = { mark: Mark; note?: string };

export type ShownNode = Node<{
  id: string;
  title: string | undefined;
  type: string;
  editable: boolean;
  state: NodeState | undefined;
  wrong: boolean;
  ports: readonly string[];
}>;

export function GraphNode({ data, selected }: NodeProps<ShownNode>) {
  const { id, title, type, state, wrong, ports, editable } = data;
  return (
    <div
      className={classes(
        "flex h-full w-full flex-col justify-center rounded-md border bg-surface px-3 py-1.5 text-left",
        selected ? "border-kelp shadow-[0_0_0_2px_var(--kelp)]" : "border-line-strong",
        wrong && "border-failed",
        state?.mark.state === "failed" && "bg-failed-soft",
        state?.mark.state === "degraded" && "bg-degraded-soft",
        state?.mark.state === "ok" && "bg-ok-soft",
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
        <Handle
          key={port}
          id={port}
          type="source"
          position={Position.Bottom}
          isConnectable={editable}
          title={editable ? `Drag to the step that runs after ${title ?? id} ${port}` : undefined}
          style={{ left: `${((index + 1) * 100) / (ports.length + 1)}%` }}
          className={classes(handleClasses(editable), port === "failed" && "handle-failed")}
        />
      ))}
    </div>
  );
}

const handleClasses = (editable: boolean) => (editable ? "handle" : "handle-hidden");
