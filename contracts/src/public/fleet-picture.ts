// How a picture of the fleet is packed and unpacked. With 10,000 nodes it is about 10 bytes for each, because names
// that follow each other are alike and most nodes are of a few kinds.

import type { FleetPicture, FleetState } from "../endpoints/fleet.ts";

export type PictureNode = {
  name: string;
  state: FleetState;
  /** What explains the state, as a code. */
  reason: string | null;
  version: string | null;
  block: string | null;
  /** Since when it is unhealthy, in milliseconds; null: healthy, or unknown. */
  since: number | null;
};

type Columns = Pick<FleetPicture, "names" | "kinds" | "blocks" | "kind" | "block" | "since">;

/** `nodes` are sorted by name. Names hold no space. */
export function packNodes(nodes: readonly PictureNode[], at: number): Columns {
  const kinds = indexer<FleetPicture["kinds"][number]>();
  const blocks = indexer<string>();
  const names: string[] = [];
  const columns: Columns = {
    names: "",
    kinds: kinds.values,
    blocks: blocks.values,
    kind: [],
    block: [],
    since: [],
  };
  let before = "";
  for (const { name, state, reason, version, block, since } of nodes) {
    const shared = sharedLength(before, name);
    names.push(shared.toString(36) + name.slice(shared));
    before = name;
    columns.kind.push(kinds.indexOf(`${state} ${reason} ${version}`, () => ({ state, reason, version })));
    columns.block.push(block === null ? -1 : blocks.indexOf(block, () => block));
    if (state !== "fine")
      columns.since.push(since === null ? -1 : Math.max(0, wholeSeconds(at) - wholeSeconds(since)));
  }
  return { ...columns, names: names.join(" ") };
}

export function unpackNodes(picture: Columns, at: number): PictureNode[] {
  if (picture.names === "") return [];
  let name = "";
  let dated = 0;
  return picture.names.split(" ").map((coded, index) => {
    name = name.slice(0, Number.parseInt(coded.charAt(0), 36)) + coded.slice(1);
    const kind = picture.kinds[picture.kind[index] ?? -1];
    if (!kind) throw new Error("a picture of the fleet names a kind that it does not have");
    const seconds = kind.state === "fine" ? -1 : (picture.since[dated++] ?? -1);
    const block = picture.blocks[picture.block[index] ?? -1] ?? null;
    return { name, ...kind, block, since: seconds < 0 ? null : (wholeSeconds(at) - seconds) * 1000 };
  });
}

/** The known nodes with the changes of a response applied. Sorted by name. */
export function applyPicture(known: readonly PictureNode[], picture: FleetPicture): PictureNode[] {
  const received = unpackNodes(picture, Date.parse(picture.at));
  if (picture.whole) return received;
  const all = new Map(known.map((node) => [node.name, node]));
  for (const name of picture.gone) all.delete(name);
  for (const node of received) all.set(node.name, node);
  return [...all.values()].sort(byName);
}

export function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** So that the same moment stays the same in pictures of different times. */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** One digit of base 36 is all that is written of it. */
const MOST_SHARED = 35;

function sharedLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length, MOST_SHARED);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  return length;
}

function indexer<T>() {
  const values: T[] = [];
  const known = new Map<string, number>();
  return {
    values,
    indexOf(key: string, make: () => T): number {
      const present = known.get(key);
      if (present !== undefined) return present;
      known.set(key, values.length);
      return values.push(make()) - 1;
    },
  };
}
