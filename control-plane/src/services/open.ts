// Puts the internal side of an api process together: listener, revocations, what gateways say of themselves.

import { randomBytes } from "node:crypto";
import type { Values } from "@holdfast/kit/settings";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { listenerNames } from "@holdfast/service/node-identity/names";
import { markOfIngressToken } from "@holdfast/service/service-proof";
import { apiSettings } from "../api/settings.ts";
import type { Sql } from "../database/connect.ts";
import { type Authority, temporaryAuthority } from "../identity/authority.ts";
import type { Keyring } from "../sealing/keyring.ts";
import type { Signals } from "../signals/signals.ts";
import { runPeriodically } from "../worker/periodic.ts";
import { createServiceListener } from "./listener.ts";
import type { News } from "./news.ts";
import { watchRevocations } from "./revocations.ts";
import type { ServiceApi } from "./route.ts";
import { serviceRoutes } from "./routes.ts";

export type ServiceSide = {
  api: ServiceApi;
  /** Answers with its port. */
  listen(): Promise<number>;
  stop(): Promise<void>;
};

const RENEWAL_SECONDS = 60 * 60;

/** What certificates of ingresses that count carry; undefined: there are none. */
export function ingressMarkOf({ ingressToken }: { ingressToken: string | undefined }): string | undefined {
  return ingressToken === undefined ? undefined : markOfIngressToken(ingressToken);
}

/** The hosts that nodes are told; on one machine, its own names. */
function ingressNamesOf({ nodeUrl, nodeTerminalUrl, nodeBind }: Values<typeof apiSettings>): string[] {
  const told = [nodeUrl, nodeTerminalUrl].filter((url) => url !== undefined);
  if (nodeUrl === undefined) return listenerNames({ bind: nodeBind, url: nodeTerminalUrl });
  return [...new Set(told.map((url) => new URL(url).hostname.replace(/^\[|\]$/g, "")))];
}

/** Undefined: there is neither a service token nor one of ingresses, and so nobody to listen to. */
export async function openServiceSide(options: {
  settings: Values<typeof apiSettings>;
  system: Sql;
  keyring: Keyring;
  signals: Signals;
  authority: Authority | undefined;
  metrics: Metrics;
  log: Log;
  origins: () => string[];
  onAnnounced(): Promise<void>;
  news: News;
  onForged(forgery: Forgery): void;
}): Promise<ServiceSide | undefined> {
  const { settings, system, keyring, signals, authority, news, metrics, log } = options;
  const { serviceToken: token, ingressToken } = settings;
  if (token === undefined && ingressToken === undefined) return undefined;
  const listener = await createServiceListener({
    place: { bind: settings.internalBind, url: settings.internalUrl },
    authority: authority ?? (await temporaryAuthority(new Date())),
    ticketKeys: await keyring.getOrCreate("tls-tickets:internal-api", () => randomBytes(48)),
    onForged: options.onForged,
    log,
    metrics,
  });
  const revocations = watchRevocations({ system, signals, tell: news.tell, log });
  serviceRoutes(listener.api, {
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
  const renewal = runPeriodically({
    name: "internal-listener-certificate",
    seconds: RENEWAL_SECONDS,
    log,
    work: async () => void (await listener.renewIfDue(new Date())),
  });

  return {
    api: listener.api,
    listen: () => listener.listen({ port: settings.internalPort, portSetting: apiSettings.internalPort.env }),
    async stop() {
      await Promise.all([listener.stop(), renewal.stop(), revocations.stop()]);
    },
  };
}
