// The editor of a draft: the graph and the text side by side, each a view of the other.

import { readWorkflow } from "@holdfast/workflows/document/read";
import type { Node } from "@holdfast/workflows/document/schema";
import { testableTypes } from "@holdfast/workflows/document/step-test";
import { writeWorkflow } from "@holdfast/workflows/document/write";
import { useDeferredValue, useMemo, useState } from "react";
import { Button } from "../../../design/controls/Button.tsx";
import { Icon } from "../../../design/controls/Icon.tsx";
import { Menu, MenuItem } from "../../../design/controls/Menu.tsx";
import { Notice } from "../../../design/feedback/Notice.tsx";
import { Card } from "../../../design/layout/Card.tsx";
import { addNode, connect, disconnect, removeNode } from "../document/edit.ts";
import { type OutlineNode, outlineOf, outlineOfDocument } from "../document/outline.ts";
import { type Editing, Graph } from "../graph/Graph.tsx";
import { nodeTypes, typeWords } from "../graph/words.ts";
import { CodeEditor } from "./CodeEditor.tsx";
import { NodePanel } from "./NodePanel.tsx";
import { freeId, newNodes } from "./new-nodes.ts";
import { Problems } from "./Problems.tsx";
import { type StepUnderTest, TestStep } from "./TestStep.tsx";

type EditorProps = { workflowId: string; text: string; onChange: (text: string) => void; readOnly: boolean };

export function Editor({ workflowId, text, onChange, readOnly }: EditorProps) {
  const settled = useDeferredValue(text);
  const read = useMemo(() => readWorkflow(settled), [settled]);
  const problems = useMemo(() => (read.ok ? [] : read.problems), [read]);
  const isOlder = read.ok && read.version === "v2";
  const outline = useOutline(settled, read);
  const { nodes } = outline;
  const [selected, setSelected] = useState<string | null>(null);
  const [goTo, setGoTo] = useState<{ line: number; column: number } | null>(null);
  const canDraw = !readOnly && !isOlder && outline.isCurrent;
  const editing: Editing = {
    onConnect: (edge) => onChange(connect(text, edge)),
    onDisconnect: (edge) => onChange(disconnect(text, edge)),
    onRemove: (id) => {
      onChange(removeNode(text, id));
      setSelected(null);
    },
  };
  const add = (type: Node["type"]) => {
    const id = freeId(
      type,
      nodes.map((node) => node.id),
    );
    const before = nodes.find((node) => node.id === selected) ?? nodes.at(-1);
    const follows = before ? { after: [before.type === "condition" ? `${before.id}.true` : before.id] } : {};
    const { type: _, ...rest } = newNodes[type] as { type: string };
    onChange(addNode(text, id, { type, ...follows, ...rest }));
    setSelected(id);
  };
  const wrong = useMemo(
    () => new Set(problems.flatMap(({ path }) => /^nodes\.([a-z0-9_-]+)/.exec(path)?.[1] ?? [])),
    [problems],
  );
  const shown = nodes.some(({ id }) => id === selected) ? selected : null;
  const [testing, setTesting] = useState<StepUnderTest | null>(null);
  const node = shown !== null && read.ok ? read.document.nodes[shown] : undefined;
  const tested =
    shown !== null && node && testableTypes.has(node.type)
      ? { id: shown, node, workflowId, source: settled }
      : undefined;
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-2">
      <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
        {isOlder && (
          <Notice state="unknown" title="This document has the form of the source system (v2).">
            <p>It runs as it is. To edit it as a graph, convert it to version 1.</p>
            {!readOnly && read.ok && (
              <Button className="mt-2" onClick={() => onChange(writeWorkflow(read.document, "yaml"))}>
                Convert to version 1
              </Button>
            )}
          </Notice>
        )}
        <Card title="Graph" note={canDraw && <AddStep onAdd={add} />}>
          <div className="relative h-[28rem]">
            {nodes.length > 0 ? (
              <Graph
                label="Graph of the workflow"
                nodes={nodes}
                selected={shown}
                onSelect={setSelected}
                wrong={wrong}
                {...(canDraw ? { editing } : {})}
              />
            ) : (
              <div className="flex h-full flex-col items-center justify-center gap-3 px-6 text-center text-ink-muted">
                <p>There are no steps yet. Add the first one here, or write it in the text.</p>
                {canDraw && <FirstSteps onAdd={add} />}
              </div>
            )}
          </div>
          {!outline.isCurrent && (
            <p className="border-t border-line px-4 py-2.5 text-sm text-degraded" role="status">
              The text cannot be read. The graph shows the last text that could be.
            </p>
          )}
        </Card>
        {shown !== null && !isOlder && outline.isCurrent && (
          <NodePanel
            id={shown}
            text={text}
            nodes={nodes}
            readOnly={readOnly}
            onChange={onChange}
            onSelect={setSelected}
            onTest={tested && (() => setTesting(tested))}
          />
        )}
      </div>
      {testing && <TestStep {...testing} onClose={() => setTesting(null)} />}
      <Card title="Text" note={readOnly ? "You may read it only." : undefined} className="xl:sticky xl:top-4">
        <div className="h-[34rem]">
          <CodeEditor
            label="Workflow as YAML"
            value={text}
            onChange={onChange}
            problems={problems}
            readOnly={readOnly}
            goTo={goTo}
          />
        </div>
        <Problems problems={problems} onGoTo={setGoTo} />
      </Card>
    </div>
  );
}

/** While the text cannot be read, the last one that could. */
function useOutline(
  text: string,
  read: ReturnType<typeof readWorkflow>,
): { nodes: OutlineNode[]; isCurrent: boolean } {
  const found = useMemo(() => (read.ok ? outlineOfDocument(read.document) : outlineOf(text)), [text, read]);
  const [last, setLast] = useState<OutlineNode[]>(found ?? []);
  if (found && found !== last) setLast(found);
  return { nodes: found ?? last, isCurrent: found !== undefined };
}

function AddStep({ onAdd }: { onAdd: (type: Node["type"]) => void }) {
  return (
    <Menu
      align="end"
      trigger={
        <Button>
          <Icon name="plus" />
          Add step
        </Button>
      }
    >
      {nodeTypes.map((type) => (
        <MenuItem key={type} onClick={() => onAdd(type)}>
          {typeWords[type]}
        </MenuItem>
      ))}
    </Menu>
  );
}

function FirstSteps({ onAdd }: { onAdd: (type: Node["type"]) => void }) {
  return (
    <div className="flex flex-wrap justify-center gap-2">
      {(["agent.execute", "http.request", "wait"] as const).map((type) => (
        <Button key={type} onClick={() => onAdd(type)}>
          {typeWords[type]}
        </Button>
      ))}
    </div>
  );
}
