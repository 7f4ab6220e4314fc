// The headers of the page. Terminals of a page go to the gateways, which have addresses of their own: its
// policy names those that are there when it is loaded.

import { pageHeaders } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { presentTerminalUrls } from "../internal-api/gateways.ts";

export type PagePolicy = { headers(): Promise<Record<string, string>> };

/** Pages are asked for by anybody: the database is not, more often than this. */
const KEPT_MS = 2_000;

export function createPagePolicy({ system, log }: { system: Sql; log: Log }): PagePolicy {
  let origins: readonly string[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return {
    async headers() {
      const now = performance.now();
      if (now - readAt > KEPT_MS) {
        readAt = now;
        try {
          origins = [...new Set((await presentTerminalUrls(system)).flatMap(originsOf))];
        } catch (error) {
          // The page is worth more than its terminals: it can say that the database is away.
          log.debug({ err: error }, "the page's policy names the gateways of a while ago");
        }
      }
      return pageHeaders(origins);
    },
  };
}

/** For the terminal itself, and for the question whether the gateway is there. */
function originsOf(terminalUrl: string): string[] {
  const { origin } = new URL(terminalUrl);
  return [origin, origin.replace(/^ws/, "http")];
}
