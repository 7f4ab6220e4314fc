// Paints the picture. Each state has its own shape and weight: a healthy node is small and pale, any other
// fills its cell. Thousands of cells take a few milliseconds, because only rectangles are filled one by one.

import type { FleetState } from "@holdfast/contracts/endpoints/fleet";
import type { NodeGroup } from "./grouping.ts";
import { cellPosition, HEADING, type Layout } from "./layout.ts";
import { count } from "./words.ts";

export type Colours = Record<FleetState | "ink" | "muted", string>;

const names: Record<keyof Colours, string> = {
  silent: "--failed",
  troubled: "--degraded",
  fenced: "--ink",
  draining: "--kelp",
  joining: "--kelp",
  fine: "--ok",
  ink: "--ink",
  muted: "--ink-muted",
};

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const entries = Object.entries(names).map(([name, variable]) => [name, style.getPropertyValue(variable).trim()]);
  return Object.fromEntries(entries) as Colours;
}

export function drawFleet(
  context: CanvasRenderingContext2D,
  {
    layout,
    groups,
    colours,
    font,
  }: { layout: Layout; groups: readonly NodeGroup[]; colours: Colours; font: string },
): void {
  context.clearRect(0, 0, layout.width, layout.height);
  for (const [group, { nodes }] of groups.entries()) {
    drawHeading(context, { layout, group, groups, colours, font });
    for (const [index, { state }] of nodes.entries()) {
      const at = cellPosition(layout, { group, index });
      if (at) drawCell(context, { ...at, size: cellSize(at.pitch), state, colour: colours[state] });
    }
  }
}

/** What of the pitch the cell itself takes. */
export function cellSize(pitch: number): number {
  return pitch - (pitch >= 16 ? 4 : pitch >= 9 ? 2 : 1);
}

type Heading = {
  layout: Layout;
  group: number;
  groups: readonly NodeGroup[];
  colours: Colours;
  font: string;
};

function drawHeading(context: CanvasRenderingContext2D, { layout, group, groups, colours, font }: Heading): void {
  const placed = layout.groups[group];
  const shown = groups[group];
  if (!placed || !shown) return;
  const y = placed.y - HEADING + 15;
  const figure = count(shown.nodes.length);
  context.font = `500 12.5px ${font}`;
  const figureWidth = context.measureText(figure).width;
  context.fillStyle = colours.ink;
  const label = fitted(context, shown.label, placed.width - figureWidth - 10);
  context.fillText(label, placed.x, y);
  context.fillStyle = colours.muted;
  context.fillText(figure, placed.x + context.measureText(label).width + 8, y);
}

function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

type Cell = { x: number; y: number; size: number; state: FleetState; colour: string };

function drawCell(context: CanvasRenderingContext2D, { x, y, size, state, colour }: Cell): void {
  context.fillStyle = colour;
  switch (state) {
    case "fine": {
      // A disc is dear to paint; at these sizes a smaller square reads the same.
      const inset = size >= 8 ? 0 : size >= 5 ? 1 : 0.5;
      context.globalAlpha = 0.5;
      if (size >= 8) {
        context.beginPath();
        context.arc(x + size / 2, y + size / 2, size * 0.42, 0, 2 * Math.PI);
        context.fill();
      } else context.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
      context.globalAlpha = 1;
      return;
    }
    case "silent":
      context.fillRect(x, y, size, size);
      return;
    case "draining":
      context.fillRect(x, y + size * 0.33, size, Math.max(1.5, size * 0.34));
      return;
    case "troubled":
      context.beginPath();
      context.moveTo(x + size / 2, y);
      context.lineTo(x + size, y + size);
      context.lineTo(x, y + size);
      context.fill();
      return;
    case "fenced": {
      const line = Math.max(1, size / 8);
      context.strokeStyle = colour;
      context.lineWidth = line;
      context.strokeRect(x + line / 2, y + line / 2, size - line, size - line);
      context.beginPath();
      context.moveTo(x, y + size);
      context.lineTo(x + size, y);
      context.stroke();
      return;
    }
    case "joining":
      context.strokeStyle = colour;
      context.lineWidth = Math.max(1, size / 8);
      context.beginPath();
      context.arc(x + size / 2, y + size / 2, size * 0.36, 0, 2 * Math.PI);
      context.stroke();
      return;
  }
}
