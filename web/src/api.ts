// Calls to the api, with or without an organization. Shapes and paths are the
// contract's; the session is a cookie that scripts cannot read.

import { type Client, createClient } from "@holdfast/contracts/client";
import { watchedFetch } from "./connection.ts";

export const call: Client = createClient({ baseUrl: "", fetch: watchedFetch });

export function callIn(orgId: string): Client {
  return createClient({ baseUrl: "", fetch: watchedFetch, orgId });
}
