// The steps of a run as a list: what the graph shows, for keyboards, screen readers and narrow screens.

import type { RunNode } from "@holdfast/contracts/endpoints/runs";
import { classes } from "../../design/controls/classes.ts";
import { Card } from "../../design/layout/Card.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import type { OutlineNode } from "../workflows/document/outline.ts";
import type { NodeState } from "../workflows/graph/GraphNode.tsx";
import { wordForType } from "../workflows/graph/words.ts";

type StepListProps = {
  nodes: readonly RunNode[];
  outline: readonly OutlineNode[];
  stateOf: (id: string) => NodeState | undefined;
  selected: string | null;
  onSelect: (id: string) => void;
};

export function StepList({ nodes, outline, stateOf, selected, onSelect }: StepListProps) {
  const titles = new Map(outline.map(({ id, title }) => [id, title]));
  return (
    <Card title="Steps">
      <ul aria-label="Steps">
        {nodes.map(({ id, type, attempt }) => {
          const state = stateOf(id);
          return (
            <li key={id} className="border-b border-line last:border-b-0">
              <button
                type="button"
                aria-pressed={id === selected}
                onClick={() => onSelect(id)}
                className={classes(
                  "flex w-full flex-wrap items-baseline gap-x-4 gap-y-0.5 px-5 py-2.5 text-left hover:bg-hover",
                  id === selected && "bg-hover shadow-[inset_3px_0_0_var(--kelp)]",
                )}
              >
                <span className="min-w-32 flex-1 font-medium [overflow-wrap:anywhere]">
                  {titles.get(id) ?? id}
                </span>
                <span className="text-sm text-ink-muted max-sm:hidden">{wordForType(type)}</span>
                {attempt !== null && attempt > 1 && (
                  <span className="text-sm text-ink-muted">attempt {attempt}</span>
                )}
                {state?.note && <span className="text-sm text-ink-muted tabular-nums">{state.note}</span>}
                {state && <StatusMark state={state.mark.state}>{state.mark.word}</StatusMark>}
              </button>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}
