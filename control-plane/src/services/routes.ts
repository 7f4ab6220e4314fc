// What any service asks: who it is, where it is, what is new. What gateways ask about terminals is in
// terminals/service-routes.ts.

import { announceGateway, enrollService, followServiceNews } from "@holdfast/contracts/service-endpoints";
import type { Log } from "@holdfast/service/log";
import type { FastifyInstance } from "fastify";
import { readInput } from "../api/input.ts";
import type { Sql } from "../database/connect.ts";
import type { Authority } from "../identity/authority.ts";
import { enroll } from "./enroll.ts";
import { keepGateway } from "./gateways.ts";
import type { News } from "./news.ts";
import { type ServiceApi, serviceRoute, serviceStream } from "./route.ts";

export type ServiceRouteOptions = {
  system: Sql;
  token: string;
  /** Undefined: the CA that nodes trust is gone, and nothing is issued. */
  authority: Authority | undefined;
  news: News;
  /** Origins of pages that may open terminals. */
  origins: () => string[];
  /** 48 bytes for TLS sessions that nodes resume at any gateway. */
  gatewayTicketKeys: Buffer;
  onAnnounced(): Promise<void>;
  now: () => number;
  log: Log;
};

export function serviceRoutes(api: ServiceApi, options: ServiceRouteOptions): void {
  enrollRoute(api.http, options);

  serviceRoute(api, announceGateway, async ({ body }) => {
    await keepGateway(options.system, body);
    await options.onAnnounced();
    return { origins: options.origins(), ticket_keys: options.gatewayTicketKeys.toString("base64") };
  });

  serviceStream(api, followServiceNews, ({ signal }, send) => options.news.follow(send, signal));
}

/** The only route of the internal listener that is reached without a certificate. */
function enrollRoute(http: FastifyInstance, { token, authority, now, log }: ServiceRouteOptions): void {
  http.post(enrollService.path, async (request, reply) => {
    const { body } = readInput(enrollService, request) as { body: Parameters<typeof enroll>[0] };
    const answer = await enroll(body, { token, authority, now: now() });
    const { service, instance_id } = body;
    log.info({ correlation_id: request.id, service, instance_id }, "issued a service certificate");
    reply.header("cache-control", "no-store").type("application/json; charset=utf-8");
    return reply.send(JSON.stringify(answer));
  });
}
