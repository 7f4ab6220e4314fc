// Listings: newest first, by cursor. The cursor is opaque to clients.

import { z } from "zod";
import { AnyText } from "../fields.ts";

export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("How many items at most, 1 to 200."),
  cursor: AnyText.min(1).max(200).optional().describe("`next_cursor` of the previous page."),
});

export function pageOf<T extends z.ZodType>(item: T) {
  return z.strictObject({
    items: z.array(item),
    next_cursor: z.string().nullable().describe("Ask for the next page with it; null on the last page."),
  });
}
