// The fleet as a picture: one cell for each node. It shows at a glance how many are unhealthy and whether they are
// related. The table below has the same nodes in accessible form.

import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import { useIsDark } from "../../theme.ts";
import { CellCard } from "./CellCard.tsx";
import { cellSize, coloursOf, drawFleet } from "./draw.ts";
import { type Grouping, groupNodes } from "./grouping.ts";
import { type CellAt, cellAt, cellPosition, layOut, stepFrom } from "./layout.ts";
import { useFindNode } from "./queries.ts";
import { nodesInWords, reasonInWords } from "./words.ts";

/** Of the picture; more only where the smallest cells need it. */
const ROOM_HEIGHT = 520;
/** The card appears when the mouse rests on a cell, not when it passes. */
const restMs = 150;

type PictureProps = { nodes: readonly PictureNode[]; grouping: Grouping };

export function Picture({ nodes, grouping }: PictureProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const dark = useIsDark();
  const groups = useMemo(() => groupNodes(nodes, grouping), [nodes, grouping]);
  const layout = useMemo(
    () =>
      layOut(
        groups.map(({ nodes, notFine }) => ({ count: nodes.length, calm: notFine === 0 })),
        { width, height: ROOM_HEIGHT },
      ),
    [groups, width],
  );
  const [chosen, setChosen] = useState<{ at: CellAt; byTouch: boolean }>();
  const node = chosen && groups[chosen.at.group]?.nodes[chosen.at.index];
  const position = chosen && cellPosition(layout, chosen.at);
  const open = useOpenNode();
  usePrefetch(node?.name);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme changes what the colours are
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    element.width = Math.round(layout.width * scale);
    element.height = Math.round(layout.height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const font = getComputedStyle(element).fontFamily;
    const draw = () => drawFleet(context, { layout, groups, colours: coloursOf(element), font });
    draw();
    let ended = false;
    // The first picture may be there before its font.
    if (document.fonts.status !== "loaded") void document.fonts.ready.then(() => !ended && draw());
    return () => {
      ended = true;
    };
  }, [layout, groups, dark, width]);

  const under = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return cellAt(layout, { x: event.clientX - box.left, y: event.clientY - box.top });
  };
  const onPointerMove = (event: PointerEvent) => {
    if (event.pointerType === "touch") return;
    const at = under(event);
    setChosen((before) =>
      at && before?.at.group === at.group && before.at.index === at.index ? before : at && { at, byTouch: false },
    );
  };
  const onPointerUp = (event: PointerEvent) => {
    const at = under(event);
    if (event.pointerType === "touch") return setChosen(at && { at, byTouch: true });
    const name = at && groups[at.group]?.nodes[at.index]?.name;
    if (name && event.button === 0) void open(name, { beside: event.ctrlKey || event.metaKey });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") return setChosen(undefined);
    if (event.key === "Enter" && node) return void open(node.name, { beside: event.ctrlKey || event.metaKey });
    const at = stepFrom(layout, chosen?.at, event.key);
    if (!at) return;
    event.preventDefault();
    setChosen({ at, byTouch: false });
  };

  const size = position ? cellSize(position.pitch) : 0;
  return (
    <div
      ref={frame}
      // The arrow keys are for the picture, also under a screen reader.
      role="application"
      aria-label={`Picture of ${nodesInWords(nodes.length)}. Arrow keys move between nodes and Enter opens one. The table below lists the same nodes.`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys need it
      tabIndex={0}
      onKeyDown={onKeyDown}
      onBlur={(event) => !event.currentTarget.contains(event.relatedTarget) && setChosen(undefined)}
      className="relative rounded-sm"
    >
      <canvas
        ref={canvas}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerLeave={(event) => event.pointerType !== "touch" && setChosen(undefined)}
        style={{ width: layout.width, height: layout.height, cursor: node ? "pointer" : undefined }}
        className="block max-w-full font-sans"
      />
      {node && position && (
        <>
          <span
            aria-hidden="true"
            className="pointer-events-none absolute rounded-[2px] outline-2 outline-ink"
            style={{ left: position.x - 1, top: position.y - 1, width: size + 2, height: size + 2 }}
          />
          <CellCard
            node={node}
            at={{ x: position.x, y: position.y + size }}
            roomWidth={layout.width}
            onOpen={chosen.byTouch ? () => void open(node.name, { beside: false }) : undefined}
          />
        </>
      )}
      <p role="status" className="sr-only">
        {node &&
          `${node.name}: ${fleetStateTitles[node.state].title}${reasonInWords(node) ? `, ${reasonInWords(node)}` : ""}`}
      </p>
    </div>
  );
}

function useWidth(element: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watched = element.current;
    if (!watched) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(watched.clientWidth)));
    observer.observe(watched);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

function useOpenNode(): (name: string, how: { beside: boolean }) => Promise<void> {
  const navigate = useNavigate();
  const find = useFindNode();
  return async (name, { beside }) => {
    const found = await find(name);
    if (!found) return;
    if (beside) window.open(`/nodes/${found.id}`, "_blank", "noopener");
    else await navigate({ to: "/nodes/$nodeId", params: { nodeId: found.id } });
  };
}

/** Loaded in advance, so that a click opens the node immediately. */
function usePrefetch(name: string | undefined): void {
  const find = useRef(useFindNode());
  useEffect(() => {
    if (name === undefined) return;
    const timer = setTimeout(() => void find.current(name).catch(() => undefined), restMs);
    return () => clearTimeout(timer);
  }, [name]);
}
