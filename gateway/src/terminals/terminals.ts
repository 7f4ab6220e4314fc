// The terminals of a gateway, put together: what the listeners, the link to the api and the metrics need of them.

import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import type { ApiLink } from "../api-link/link.ts";
import type { Outbox } from "../api-link/outbox.ts";
import type { Bindings } from "../bindings/bindings.ts";
import type { NodeRoute } from "../listeners/node-listener.ts";
import type { PublicRoute } from "../listeners/public-listener.ts";
import type { Relay } from "../relay/relay.ts";
import { admitStreams, terminalNodeRoute } from "./node-route.ts";
import { terminalPublicRoute } from "./public-route.ts";
import { createRecheck } from "./recheck.ts";
import { createSessions, type Sessions } from "./sessions.ts";

export type Terminals = {
  publicRoute: PublicRoute;
  nodeRoute: NodeRoute;
  count(): number;
  onNews(news: ServiceNews): void;
  onLost: Sessions["onLost"];
  /** News may have been missed: checks all streams with the api again. */
  recheck(): Promise<void>;
  /** No client is admitted any more; those that are connected get an error. Shells keep running. */
  drain(): void;
};

export function createTerminals(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  isApiKnown(): boolean;
  bindings: Bindings;
  relay: Pick<Relay, "open">;
  outbox: Outbox;
  log: Log;
  metrics: Metrics;
}): Terminals {
  const { api, outbox, log, metrics } = options;
  const traffic = { to_client: 0, to_node: 0 };
  metrics.totalsBy("direction", "holdfast_gateway_terminal_bytes_total", "Bytes of terminals", () => traffic);
  const onFailure = metrics.countByCode(
    "holdfast_gateway_terminal_failures_total",
    "Terminals that did not come up or were ended, by the code that was sent to the client",
  );
  const sessions = createSessions({ api, bindings: options.bindings, outbox, traffic, onFailure, log });
  metrics.gaugeByReason("holdfast_gateway_terminals", "Terminals at this gateway, by state", async () => {
    return sessions.countByState();
  });
  const admit = admitStreams(api, sessions);
  return {
    publicRoute: terminalPublicRoute({ ...options, sessions, onFailure }),
    nodeRoute: terminalNodeRoute({ ...options, instanceId: api.instanceId, admit, sessions }),
    count: sessions.count,
    onNews: sessions.onNews,
    onLost: sessions.onLost,
    recheck: createRecheck({
      sessions: sessions.all,
      isCurrent: sessions.isCurrent,
      admit: (stream) => admit({ ...stream, again: true }),
      onRefused: sessions.noLongerAdmitted,
    }),
    drain: sessions.drain,
  };
}
