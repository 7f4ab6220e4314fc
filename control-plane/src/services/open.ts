// Puts the internal side of an api process together: listener, revocations, what gateways say of themselves.

import { randomBytes } from "node:crypto";
import type { Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
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

/** Undefined: there is no service token, and so nobody to listen to. */
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
}): Promise<ServiceSide | undefined> {
  const { settings, system, keyring, signals, authority, news, metrics, log } = options;
  const token = settings.serviceToken;
  if (token === undefined) return undefined;
  const listener = await createServiceListener({
    place: { bind: settings.internalBind, url: settings.internalUrl },
    authority: authority ?? (await temporaryAuthority(new Date())),
    ticketKeys: await keyring.getOrCreate("tls-tickets:internal-api", () => randomBytes(48)),
    log,
    metrics,
  });
  const revocations = watchRevocations({ system, signals, tell: news.tell, log });
  serviceRoutes(listener.api, {
    system,
    token,
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
