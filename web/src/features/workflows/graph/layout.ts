// Where the nodes of a graph stand: in layers from top to bottom, each below everything that it waits for, and near those.

export const NODE_WIDTH = 208;
export const NODE_HEIGHT = 68;
const GAP_X = 32;
const GAP_Y = 52;
const ROUNDS = 4;

export type Place = { x: number; y: number };
type Waits = { id: string; from: readonly string[] };

/** Total: an edge that closes a cycle, or leads to a node that does not exist, is left out. */
export function layout(nodes: readonly Waits[]): Map<string, Place> {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.map(({ id, from }) => [id, from.filter((one) => known.has(one) && one !== id)]));
  const layers = layersOf(parents);
  const deepest = Math.max(-1, ...layers.values());
  const rows = Array.from({ length: deepest + 1 }, (_, depth) =>
    nodes.flatMap(({ id }) => (layers.get(id) === depth ? [id] : [])),
  );
  for (let round = 0; round < ROUNDS; round++) order(rows, parents);
  return new Map(
    rows.flatMap((row, depth) =>
      row.map((id, index): [string, Place] => [
        id,
        { x: (index - (row.length - 1) / 2) * (NODE_WIDTH + GAP_X), y: depth * (NODE_HEIGHT + GAP_Y) },
      ]),
    ),
  );
}

/** The longest way from the start. */
function layersOf(parents: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const layers = new Map<string, number>();
  const open = new Set<string>();
  const layerOf = (id: string): number => {
    const found = layers.get(id);
    if (found !== undefined) return found;
    open.add(id);
    const above = (parents.get(id) ?? []).filter((one) => !open.has(one)).map(layerOf);
    open.delete(id);
    const layer = above.length === 0 ? 0 : Math.max(...above) + 1;
    layers.set(id, layer);
    return layer;
  };
  for (const id of parents.keys()) layerOf(id);
  return layers;
}

/** Each row in the order of the places of its parents, so that few edges cross. */
function order(rows: string[][], parents: ReadonlyMap<string, readonly string[]>): void {
  const center = new Map<string, number>();
  for (const row of rows) {
    const wish = (id: string, index: number) => {
      const places = (parents.get(id) ?? []).flatMap((one) => center.get(one) ?? []);
      if (places.length === 0) return index - (row.length - 1) / 2;
      return places.reduce((sum, place) => sum + place, 0) / places.length;
    };
    const wishes = new Map(row.map((id, index) => [id, wish(id, index)]));
    row.sort((a, b) => (wishes.get(a) ?? 0) - (wishes.get(b) ?? 0));
    for (const [index, id] of row.entries()) center.set(id, index - (row.length - 1) / 2);
  }
}
