// The position of each cell of the picture. Groups flow like words, each below its heading; few groups take a whole line
// each. The cells are as large as the room allows, so that one node is seen and ten thousand fit; where nodes need
// attention they are larger than where all are healthy. Pure.

export type GroupSize = { count: number; calm: boolean };
export type PlacedGroup = {
  x: number;
  y: number;
  width: number;
  columns: number;
  count: number;
  /** From one cell to the next. */
  pitch: number;
};
export type Layout = {
  width: number;
  height: number;
  groups: PlacedGroup[];
};
export type CellAt = { group: number; index: number };

export const HEADING = 24;
const AFTER = 12;
const BETWEEN = 16;
const pitches = [30, 24, 20, 16, 14, 12, 10, 9, 8, 7, 6, 5, 4];
/** What matters is twice as large, as long as that is not larger than this. */
const LARGE_PITCH = 14;
/** So that a heading can be read. */
const LEAST_WIDTH = 112;
/** From here on groups stand beside each other. */
const MOST_LINES = 9;

export function layOut(sizes: readonly GroupSize[], room: { width: number; height: number }): Layout {
  const width = Math.max(room.width, LEAST_WIDTH);
  let layout: Layout | undefined;
  for (const pitch of pitches) {
    layout = place(sizes, width, { calm: pitch, large: Math.max(pitch, Math.min(2 * pitch, LARGE_PITCH)) });
    if (layout.height <= room.height) return layout;
  }
  return layout ?? { width, height: 0, groups: [] };
}

function place(sizes: readonly GroupSize[], width: number, pitchOf: { calm: number; large: number }): Layout {
  const beside = sizes.length > MOST_LINES;
  const groups: PlacedGroup[] = [];
  let x = 0;
  let y = 0;
  let lineHeight = 0;
  for (const { count, calm } of sizes) {
    const pitch = calm ? pitchOf.calm : pitchOf.large;
    const most = Math.max(1, Math.floor(width / pitch));
    const columns = beside ? Math.min(most, Math.max(widest(count), Math.ceil(LEAST_WIDTH / pitch))) : most;
    const taken = beside ? Math.max(columns * pitch, LEAST_WIDTH) : width;
    if (x > 0 && x + taken > width) {
      x = 0;
      y += lineHeight;
      lineHeight = 0;
    }
    groups.push({ x, y: y + HEADING, width: Math.min(taken, width), columns, count, pitch });
    lineHeight = Math.max(lineHeight, HEADING + Math.ceil(count / columns) * pitch + AFTER);
    x += taken + BETWEEN;
  }
  return { width, height: y + lineHeight, groups };
}

/** About twice as wide as high. */
function widest(count: number): number {
  return Math.ceil(Math.sqrt(count * 2));
}

export function cellPosition({ groups }: Layout, at: CellAt): { x: number; y: number; pitch: number } | undefined {
  const group = groups[at.group];
  if (!group || at.index >= group.count) return undefined;
  const { columns, pitch } = group;
  return { x: group.x + (at.index % columns) * pitch, y: group.y + Math.floor(at.index / columns) * pitch, pitch };
}

/** The cell under a point, if there is one. */
export function cellAt({ groups }: Layout, point: { x: number; y: number }): CellAt | undefined {
  for (const [group, { x, y, columns, count, pitch }] of groups.entries()) {
    const column = Math.floor((point.x - x) / pitch);
    const row = Math.floor((point.y - y) / pitch);
    if (column < 0 || row < 0 || column >= columns) continue;
    const index = row * columns + column;
    if (index < count) return { group, index };
  }
  return undefined;
}

const steps: Record<string, (columns: number) => number> = {
  ArrowLeft: () => -1,
  ArrowRight: () => 1,
  ArrowUp: (columns) => -columns,
  ArrowDown: (columns) => columns,
};

/** Where a key leads from a cell: past the end of a group into the next one. */
export function stepFrom({ groups }: Layout, at: CellAt | undefined, key: string): CellAt | undefined {
  const first = groups.findIndex(({ count }) => count > 0);
  if (first < 0) return undefined;
  const step = steps[key];
  if (!step) return undefined;
  if (!at) return { group: first, index: 0 };
  const here = groups[at.group];
  if (!here) return { group: first, index: 0 };
  const index = at.index + step(here.columns);
  if (index >= 0 && index < here.count) return { group: at.group, index };
  const way = index < 0 ? -1 : 1;
  for (let group = at.group + way; group >= 0 && group < groups.length; group += way) {
    const count = groups[group]?.count ?? 0;
    if (count > 0) return { group, index: way > 0 ? 0 : count - 1 };
  }
  return at;
}
