// The headers of the page. Its terminals connect to the gateways, which have other origins: the content security policy
// allows those that are online when the page is loaded.

import { pageHeaders } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { presentTerminalUrls } from "../internal-api/gateways.ts";

export type PagePolicy = { headers(): Promise<Record<string, string>> };

/** Anybody can load pages, so the database is queried at most this often. */
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
          // The page is served anyway: it can report that the database is unavailable.
          log.debug({ err: error }, "could not read the gateways; the page policy keeps the last known ones");
        }
      }
      return pageHeaders(origins);
    },
  };
}

/** For the terminal itself, and for checking whether the gateway is reachable. */
function originsOf(terminalUrl: string): string[] {
  const { origin } = new URL(terminalUrl);
  return [origin, origin.replace(/^ws/, "http")];
}
