// Calls to the api: for nobody in particular, or in one organization. Shapes and paths are the
// contract's; the session is a cookie that scripts cannot read.

import { type Client, createClient } from "@holdfast/contracts/client";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";
import { watchedFetch } from "./connection.ts";

/** How long the server asked us to wait, by correlation id: error bodies do not carry the header. */
const waits = new Map<string, number>();

const send: typeof fetch = async (input, init) => {
  const response = await watchedFetch(input, init);
  const seconds = Number(response.headers.get("retry-after"));
  const correlationId = response.headers.get(CORRELATION_HEADER);
  if (seconds > 0 && correlationId) waits.set(correlationId, Math.ceil(seconds));
  return response;
};

export function secondsToWait(correlationId: string): number | undefined {
  return waits.get(correlationId);
}

export const call: Client = createClient({ baseUrl: "", fetch: send });

export function callIn(orgId: string): Client {
  return createClient({ baseUrl: "", fetch: send, orgId });
}
