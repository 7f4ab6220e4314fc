// Puts the terminals of a gateway together: the link to the api, the two listeners, the sessions between.

import type { Server } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Values } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Readiness } from "@holdfast/service/health";
import type { HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { listenerNames, listenerUrl } from "@holdfast/service/node-identity/names";
import { memoryBindings } from "../bindings/bindings.ts";
import type { GatewayForgeries } from "../services/forgeries.ts";
import { type ApiLink, linkToApi } from "../services/link.ts";
import { createOutbox } from "../services/outbox.ts";
import { gatewaySettings } from "../settings.ts";
import { publicHosts, terminalUrl } from "./addresses.ts";
import { createNodeListener } from "./node-listener.ts";
import { servePublicSocket } from "./public-socket.ts";
import { createSessions } from "./sessions.ts";

export type Terminals = {
  /** Of the node-facing listener. */
  port: number;
  readiness(): Readiness;
  /** Tells clients, hands shells on to whoever comes next, and closes. */
  stop(): Promise<void>;
};

const READY_WITHIN_MS = 10_000;
const TELL_WITHIN_MS = 2_000;
const LEAVE_WITHIN_MS = 1_000;

export async function openTerminals(options: {
  settings: Values<typeof gatewaySettings>;
  token: string;
  http: Server;
  refuseForged: HttpServer["refuseForged"];
  forgeries: GatewayForgeries;
  publicPort: number;
  log: Log;
  metrics: Metrics;
}): Promise<Terminals> {
  const { settings, token, http, forgeries, log, metrics } = options;
  const instanceId = uuidv7();
  const place = { bind: settings.nodeBind, url: settings.nodeUrl };
  const names = listenerNames(place);
  const refused = metrics.countByCode(
    "holdfast_gateway_upgrades_refused_total",
    "Connections of browsers and nodes that were refused before they were WebSockets",
  );
  const traffic = { to_client: 0, to_node: 0 };
  metrics.totalsBy("direction", "holdfast_gateway_terminal_bytes_total", "Bytes of terminals", () => traffic);

  let link: ApiLink | undefined;
  const api: Pick<ApiLink, "ask" | "instanceId"> = {
    instanceId,
    ask: async (endpoint, asked) => {
      if (!link) throw new Error("asked before the link to the api was made");
      return link.ask(endpoint, asked);
    },
  };
  forgeries.tellTo(api);
  const outbox = createOutbox({ api, log });
  const bindings = memoryBindings(instanceId);
  const sessions = createSessions({
    api,
    bindings,
    outbox,
    traffic,
    onFailure: metrics.countByCode(
      "holdfast_gateway_terminal_failures_total",
      "Terminals that did not come up or were ended, by the code that the client was told",
    ),
    log,
  });
  metrics.gaugeByReason("holdfast_gateway_terminals", "Terminals at this gateway, by state", async () => {
    return sessions.countByState();
  });

  metrics.gaugeByReason("holdfast_gateway_held", "What the gateway holds for terminals, by kind", async () => ({
    bindings: bindings.size(),
    client_sockets: publicSocket.size(),
    node_sockets: nodeListener.size(),
    unsent_events: outbox.waiting(),
  }));

  const nodeListener = createNodeListener({
    bind: settings.nodeBind,
    names,
    sessions,
    onRefused: refused,
    onForged: (forgery) => forgeries.saw("node_terminal", forgery),
    log,
    metrics,
  });
  const port = await nodeListener.listen({
    port: settings.nodePort,
    portSetting: gatewaySettings.nodePort.env,
  });
  link = linkToApi({
    apiUrl: settings.apiUrl,
    token,
    instanceId,
    names,
    announcement: () => ({
      terminal_url: terminalUrl(settings, options.publicPort),
      node_url: listenerUrl(place, port),
      sessions: sessions.count(),
    }),
    onIdentity: (identity, { ticket_keys }) => nodeListener.use(identity, Buffer.from(ticket_keys, "base64")),
    onAnnounced: ({ ingress_mark }) => nodeListener.trustIngress(ingress_mark ?? undefined),
    onListening: () => void sessions.askAgain(),
    onNews: sessions.onNews,
    log,
  });
  const publicSocket = servePublicSocket({
    http,
    hosts: publicHosts(settings),
    origins: () => link?.announced()?.origins,
    sessions,
    refuseForged: options.refuseForged,
    onRefused: refused,
    log,
  });
  log.info({ port }, "gateway listens for nodes");
  // It serves without the api too, if only to say so.
  await Promise.race([link.whenPresent, wait(READY_WITHIN_MS, undefined, { ref: false })]);

  return {
    port,
    readiness() {
      const checks = {
        enrolled: link?.isEnrolled() ? { ok: true } : { ok: false, reason: "no certificate from the api" },
        announced: link?.isPresent() ? { ok: true } : { ok: false, reason: "the api does not answer" },
        node_listener: nodeListener.isUsable() ? { ok: true } : { ok: false, reason: "no certificate yet" },
      };
      return { ready: Object.values(checks).every(({ ok }) => ok), checks };
    },
    async stop() {
      publicSocket.close();
      sessions.drain();
      await outbox.flush(TELL_WITHIN_MS);
      await Promise.all([publicSocket.stop(LEAVE_WITHIN_MS), nodeListener.stop(LEAVE_WITHIN_MS)]);
      outbox.stop();
      link?.stop();
    },
  };
}
