// Assembles the internal side of an api process: listener, revocations, and announcements of gateways.

import { randomBytes } from "node:crypto";
import type { Values } from "@holdfast/kit/settings";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { listenerNames } from "@holdfast/service/node-identity/names";
import type { Sql } from "../database/connect.ts";
import { type Authority, temporaryAuthority } from "../identity/authority.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";
import type { nodeListenerSettings } from "../node-api/settings.ts";
import type { terminalSettings } from "../terminals/settings.ts";
import { ingressMarkOf } from "./ingress.ts";
import { createInternalListener } from "./listener.ts";
import type { News } from "./news.ts";
import { announceRevocations } from "./revocations.ts";
import type { InternalApi } from "./route.ts";
import { internalRoutes } from "./routes.ts";
import { internalApiSettings } from "./settings.ts";
import type { InternalUpkeep } from "./upkeep.ts";

export type InternalSide = {
  api: InternalApi;
  upkeep: InternalUpkeep;
  /** Returns the port. */
  listen(): Promise<number>;
  stop(): Promise<void>;
};

type InternalSideSettings = Values<typeof internalApiSettings> &
  Pick<Values<typeof nodeListenerSettings>, "nodeUrl" | "nodeBind"> &
  Pick<Values<typeof terminalSettings>, "nodeTerminalUrl">;

/** The hosts in the URLs that are published to nodes; on a single machine, its own names. */
function ingressNamesOf({ nodeUrl, nodeTerminalUrl, nodeBind }: InternalSideSettings): string[] {
  const published = [nodeUrl, nodeTerminalUrl].filter((url) => url !== undefined);
  if (nodeUrl === undefined) return listenerNames({ bind: nodeBind, url: nodeTerminalUrl });
  return [...new Set(published.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, "")))];
}

/** Undefined without a service token and an ingress token: then no process could connect. */
export async function openInternalSide(options: {
  settings: InternalSideSettings;
  system: Sql;
  keyring: Keyring;
  authority: Authority | undefined;
  metrics: Metrics;
  log: Log;
  origins: () => string[];
  onAnnounced(): Promise<void>;
  news: News;
  onForged(forgery: Forgery): void;
}): Promise<InternalSide | undefined> {
  const { settings, system, keyring, authority, news, metrics, log } = options;
  const { serviceToken: token, ingressToken } = settings;
  if (token === undefined && ingressToken === undefined) return undefined;
  const listener = await createInternalListener({
    place: { bind: settings.internalBind, url: settings.internalUrl },
    authority: authority ?? temporaryAuthority(new Date()),
    ticketKeys: await keyring.getOrCreate("tls-tickets:internal-api", () => randomBytes(48)),
    onForged: options.onForged,
    log,
    metrics,
  });
  internalRoutes(listener.api, {
    system,
    token,
    ingressToken,
    ingressNames: ingressNamesOf(settings),
    ingressMark: ingressMarkOf(settings),
    authority,
    news,
    origins: options.origins,
    gatewayTicketKeys: await keyring.getOrCreate("tls-tickets:gateway", () => randomBytes(48)),
    onAnnounced: options.onAnnounced,
    now: Date.now,
    log,
  });
  return {
    api: listener.api,
    upkeep: {
      renewCertificate: listener.renewIfDue,
      announceRevocations: () => announceRevocations(system, news),
      keepAlive: news.keepAlive,
      askForLogs: (requests) => news.publish(requests.map((request) => ({ type: "logs_wanted", ...request }))),
    },
    listen: () =>
      listener.listen({ port: settings.internalPort, portSetting: internalApiSettings.internalPort.env }),
    stop: listener.stop,
  };
}
