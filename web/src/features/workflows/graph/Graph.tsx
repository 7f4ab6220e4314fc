// A workflow as a graph, for the editor and for a run. Nodes have fixed places (layout.ts); what they are is also in a list or a
// panel beside it, so that nobody needs the picture.

import "@xyflow/react/dist/base.css";
import "./graph.css";
import {
  Background,
  Controls,
  type Edge,
  type EdgeChange,
  MarkerType,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { useEffect, useMemo } from "react";
import { edgesOf, type GraphEdge, type OutlineNode } from "../document/outline.ts";
import { GraphNode, type NodeState, type ShownNode } from "./GraphNode.tsx";
import { layout, NODE_HEIGHT, NODE_WIDTH } from "./layout.ts";
import { portsOfType, portWords } from "./words.ts";

export type Editing = {
  onConnect: (edge: GraphEdge) => void;
  onDisconnect: (edge: GraphEdge) => void;
  onRemove: (id: string) => void;
};

type GraphProps = {
  label: string;
  nodes: readonly OutlineNode[];
  selected: string | null;
  onSelect: (id: string | null) => void;
  /** Of a run. */
  stateOf?: (id: string) => NodeState | undefined;
  /** Nodes with problems. */
  wrong?: ReadonlySet<string>;
  editing?: Editing;
};

const nodeTypes = { step: GraphNode };
const words = {
  "node.a11yDescription.default": "Press Enter to select a step, Delete to remove it, Escape to deselect it.",
  "edge.a11yDescription.default": "Press Enter to select a connection, Delete to remove it.",
  "controls.ariaLabel": "Zoom",
  "controls.zoomIn.ariaLabel": "Zoom in",
  "controls.zoomOut.ariaLabel": "Zoom out",
  "controls.fitView.ariaLabel": "Show all steps",
};

export function Graph(props: GraphProps) {
  return (
    <ReactFlowProvider>
      <Drawn {...props} />
    </ReactFlowProvider>
  );
}

function Drawn({ label, nodes, selected, onSelect, stateOf, wrong, editing }: GraphProps) {
  const places = useMemo(
    () => layout(nodes.map(({ id, after }) => ({ id, from: after.map((one) => one.split(".")[0] ?? "") }))),
    [nodes],
  );
  const links = useMemo(() => edgesOf(nodes), [nodes]);
  const shown = nodes.map((node): ShownNode => {
    const state = stateOf?.(node.id);
    return {
      id: node.id,
      type: "step",
      position: places.get(node.id) ?? { x: 0, y: 0 },
      width: NODE_WIDTH,
      height: NODE_HEIGHT,
      measured: { width: NODE_WIDTH, height: NODE_HEIGHT },
      selected: node.id === selected,
      ariaRole: "button",
      data: {
        ...{ id: node.id, title: node.title, type: node.type, editable: editing !== undefined },
        ...{ state, wrong: wrong?.has(node.id) ?? false, ports: portsOfType(node.type) },
        used: new Set(links.flatMap(({ from, port }) => (from === node.id ? [port] : []))),
      },
    };
  });
  const isEditable = editing !== undefined;
  const edges = useMemo(() => links.map((edge) => drawEdge(edge, isEditable)), [links, isEditable]);
  useFitting(nodes.length);
  return (
    <ReactFlow<ShownNode, Drawn>
      aria-label={label}
      nodes={shown}
      edges={edges}
      nodeTypes={nodeTypes}
      ariaLabelConfig={words}
      nodesDraggable={false}
      nodesConnectable={editing !== undefined}
      edgesFocusable={editing !== undefined}
      elementsSelectable
      deleteKeyCode={editing ? ["Delete", "Backspace"] : null}
      onNodesChange={(changes) => takeNodes(changes)}
      onEdgesChange={(changes) => takeEdges(changes)}
      onPaneClick={() => onSelect(null)}
      onConnect={({ source, target, sourceHandle }) =>
        editing?.onConnect({ from: source, port: (sourceHandle ?? "succeeded") as GraphEdge["port"], to: target })
      }
      zoomOnScroll={false}
      preventScrolling={false}
      fitView
      fitViewOptions={fitting}
      minZoom={0.2}
      maxZoom={1.5}
    >
      <Background gap={20} />
      <Controls showInteractive={false} fitViewOptions={fitting} />
    </ReactFlow>
  );

  function takeNodes(changes: NodeChange<ShownNode>[]): void {
    for (const change of changes) {
      if (change.type === "remove") editing?.onRemove(change.id);
      if (change.type === "select" && change.selected) onSelect(change.id);
      else if (change.type === "select" && change.id === selected && changes.length === 1) onSelect(null);
    }
  }

  function takeEdges(changes: EdgeChange<Drawn>[]): void {
    for (const change of changes) {
      const edge = change.type === "remove" ? edges.find(({ id }) => id === change.id) : undefined;
      if (edge?.data) editing?.onDisconnect(edge.data);
    }
  }
}

const fitting = { maxZoom: 1, padding: 0.12 };

/** Another node may stand outside of what is seen. */
function useFitting(count: number): void {
  const { fitView } = useReactFlow();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the number of nodes is what it is for
  useEffect(() => {
    void fitView(fitting);
  }, [count, fitView]);
}

type Drawn = Edge<GraphEdge>;

function drawEdge(edge: GraphEdge, editable: boolean): Drawn {
  const { from, port, to } = edge;
  return {
    id: `${from}.${port}→${to}`,
    source: from,
    sourceHandle: port,
    target: to,
    type: "smoothstep",
    className: `edge-${port}`,
    markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16 },
    ariaLabel: `${to} runs after ${from} ${port === "succeeded" ? "" : `is ${portWords[port]}`}`.trim(),
    ariaRole: "button",
    focusable: editable,
    deletable: editable,
    data: edge,
  };
}
