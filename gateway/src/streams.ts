// What runs once the gateway has a service token: the link to the api, the node-facing listener, and each kind of live
// stream with its routes on both listeners. Another kind is another entry in `routes`.

import { setTimeout as wait } from "node:timers/promises";
import type { Values } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Readiness } from "@holdfast/service/health";
import type { Log } from "@holdfast/service/log";
import type { OwnProcess } from "@holdfast/service/log-store/own-process";
import type { Metrics } from "@holdfast/service/metrics";
import { listenerNames, listenerUrl } from "@holdfast/service/node-identity/names";
import type { GatewayForgeries } from "./api-link/forgeries.ts";
import { type ApiLink, linkToApi } from "./api-link/link.ts";
import { answerForLogs } from "./api-link/logs.ts";
import { createOutbox } from "./api-link/outbox.ts";
import { openBindings } from "./bindings/open.ts";
import { createExecutions } from "./execution/execution.ts";
import { executionUrl, terminalUrl } from "./listeners/addresses.ts";
import { createInternalListener, type InternalListener, internalNames } from "./listeners/internal-listener.ts";
import { createNodeListener } from "./listeners/node-listener.ts";
import type { PublicListener } from "./listeners/public-listener.ts";
import { createRelay } from "./relay/relay.ts";
import { gatewaySettings } from "./settings.ts";
import { createTerminals, type Terminals } from "./terminals/terminals.ts";

export type Streams = {
  /** The port of the node-facing listener. */
  port: number;
  /** The port of the internal listener; undefined: there is no dispatch token. */
  internalPort: number | undefined;
  readiness(): Readiness;
  /** Informs clients, leaves shells to the next gateway, and closes. */
  stop(): Promise<void>;
};

const READY_WITHIN_MS = 10_000;
const REPORT_WITHIN_MS = 2_000;
const LEAVE_WITHIN_MS = 1_000;
/** How long steps that are under way may take to end at this gateway, unless HOLDFAST_DRAIN_SECONDS is longer. */
const DRAIN_MS = 2_000;

type StreamsOptions = {
  settings: Values<typeof gatewaySettings>;
  token: string;
  publicListener: PublicListener;
  publicPort: number;
  forgeries: GatewayForgeries;
  own: OwnProcess;
  log: Log;
  metrics: Metrics;
};

export async function startStreams(options: StreamsOptions): Promise<Streams> {
  const { settings, forgeries, log, metrics } = options;
  const instanceId = uuidv7();
  const place = { bind: settings.nodeBind, url: settings.nodeUrl };
  const names = [...new Set([...listenerNames(place), ...internalNames(settings)])];
  const onRefused = metrics.countByCode(
    "holdfast_gateway_upgrades_refused_total",
    "Connections of browsers, nodes and agents that were refused before they were WebSockets",
  );

  let link: ApiLink | undefined;
  const api: Pick<ApiLink, "ask" | "instanceId"> = {
    instanceId,
    ask: async (endpoint, request) => {
      if (!link) throw new Error("the link to the api does not exist yet");
      return link.ask(endpoint, request);
    },
  };
  const origins = () => link?.announced()?.origins;
  forgeries.reportTo(api);
  const outbox = createOutbox({ api, log });
  let relayUrl = "";
  const bindings = await openBindings(settings.redisUrl, {
    self: () => ({ id: instanceId, url: relayUrl }),
    onLost: (sessionId, why) => terminals.onLost(sessionId, why),
    log,
    metrics,
  });
  const relay = createRelay({ log });
  const isApiKnown = () => origins() !== undefined;
  const terminals: Terminals = createTerminals({ api, isApiKnown, bindings, relay, outbox, log, metrics });
  const { dispatchToken, agentStaleMs } = settings;
  const executions = createExecutions({ api, dispatchToken, agentStaleMs, log, metrics });
  const routes = { public: [terminals.publicRoute], node: [terminals.nodeRoute] };

  const nodeListener = createNodeListener({
    bind: settings.nodeBind,
    names,
    routes: routes.node,
    onRefused,
    onForged: (forgery) => forgeries.saw("node_terminal", forgery),
    log,
    metrics,
  });
  const port = await nodeListener.listen({
    port: settings.nodePort,
    portSetting: gatewaySettings.nodePort.env,
  });
  relayUrl = listenerUrl({ bind: settings.nodeBind, url: settings.relayUrl }, port);
  let internal: InternalListener | undefined;
  if (dispatchToken !== undefined) {
    internal = createInternalListener({ place: settings, addRoutes: executions.addInternalRoutes, log, metrics });
  }
  const internalPort = await internal?.listen({
    port: settings.internalPort,
    portSetting: gatewaySettings.internalPort.env,
  });
  link = linkToApi({
    apiUrl: settings.apiUrl,
    token: options.token,
    instanceId,
    names,
    announcement: () => ({
      terminal_url: terminalUrl(settings, options.publicPort),
      node_url: listenerUrl(place, port),
      sessions: terminals.count(),
      execution_url: executionUrl(settings, options.publicPort),
    }),
    onIdentity(identity, { ticket_keys }) {
      nodeListener.use(identity, Buffer.from(ticket_keys, "base64"));
      relay.use(identity);
      internal?.use(identity);
    },
    onAnnounced: ({ ingress_mark }) => nodeListener.trustIngress(ingress_mark ?? undefined),
    onListening: () => {
      void terminals.recheck();
      executions.resume();
    },
    onNews: (news) => {
      terminals.onNews(news);
      executions.onNews(news);
      if (news.type === "logs_wanted") answerForLogs(api, options.own, { news, log });
    },
    log,
  });
  const publicSockets = options.publicListener.serve({
    routes: routes.public,
    admittedRoutes: executions.publicRoutes,
    origins,
    onRefused,
  });
  metrics.gaugeByReason("holdfast_gateway_held", "What the gateway holds for terminals, by kind", async () => ({
    bindings: bindings.size(),
    client_sockets: publicSockets.size(),
    node_sockets: nodeListener.size(),
    relayed_streams: relay.size(),
    unsent_events: outbox.waiting(),
  }));
  log.info({ port }, "gateway listens for nodes");
  if (internalPort === undefined)
    log.warn(`nobody can dispatch steps: ${gatewaySettings.dispatchToken.env} is not set`);
  else log.info({ port: internalPort }, "gateway listens for workers");
  // It also serves without the api, to report that the api is unreachable.
  await Promise.race([link.whenAnnounced, wait(READY_WITHIN_MS, undefined, { ref: false })]);

  return {
    port,
    internalPort,
    readiness() {
      const checks = {
        enrolled: link?.isEnrolled() ? { ok: true } : { ok: false, reason: "no certificate from the api" },
        announced: link?.isAnnounced() ? { ok: true } : { ok: false, reason: "the api does not answer" },
        node_listener: nodeListener.isUsable() ? { ok: true } : { ok: false, reason: "no certificate yet" },
        ...(internal && {
          internal_listener: internal.isUsable() ? { ok: true } : { ok: false, reason: "no certificate yet" },
        }),
      };
      // Without Redis it still serves terminals whose client and node both meet here.
      const ready = Object.values(checks).every(({ ok }) => ok);
      const redis = { ok: false, reason: "terminal_binding_unavailable: Redis is unreachable" };
      return { ready, checks: { ...checks, ...(bindings.isReachable() ? {} : { redis }) } };
    },
    async stop() {
      publicSockets.close();
      await link?.leave(LEAVE_WITHIN_MS);
      terminals.drain();
      await Promise.all([
        outbox.flush(REPORT_WITHIN_MS),
        executions.drain(Math.max(DRAIN_MS, settings.drainSeconds * 1000)),
      ]);
      await executions.stop(REPORT_WITHIN_MS);
      await internal?.stop();
      await Promise.all([
        relay.stop(LEAVE_WITHIN_MS),
        publicSockets.stop(LEAVE_WITHIN_MS),
        nodeListener.stop(LEAVE_WITHIN_MS),
      ]);
      await bindings.stop();
      outbox.stop();
      link?.stop();
    },
  };
}
