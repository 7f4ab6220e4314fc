// Keyset pagination by id, newest first: ids are time-ordered, so an id is the whole cursor. It is
// wrapped to stay opaque and tagged with its listing, so that it cannot be used for another.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidForm } from "@holdfast/kit/uuid";

/** Sorts after every UUID: the first page begins below it. */
const BEFORE_ALL = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** The id that the page's items come before. */
export function pageStart(endpoint: Endpoint, cursor: string | undefined): string {
  if (cursor === undefined) return BEFORE_ALL;
  const [name, id] = Buffer.from(cursor, "base64url").toString().split(" ");
  if (name !== endpoint.name || id === undefined || !uuidForm.test(id)) throw new ApiError("invalid_cursor");
  return id;
}

/** `rows` were selected with `limit + 1`: if the extra row is present, another page follows. */
export function toPage<Row, Item>(
  endpoint: Endpoint,
  rows: readonly Row[],
  options: { limit: number; idOf: (row: Row) => string; toItem: (row: Row) => Item },
): { items: Item[]; next_cursor: string | null } {
  const page = rows.slice(0, options.limit);
  const last = page.at(-1);
  const more = rows.length > options.limit && last !== undefined;
  return {
    items: page.map(options.toItem),
    next_cursor: more ? Buffer.from(`${endpoint.name} ${options.idOf(last)}`).toString("base64url") : null,
  };
}
