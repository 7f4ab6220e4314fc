// Endpoints for all services: enrollment, announcements and news. The endpoints for gateways about terminals are in
// terminals/internal-routes.ts.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import {
  announceGateway,
  enrollIngress,
  enrollService,
  followServiceNews,
  reportForgedCertificates,
} from "@holdfast/contracts/internal/endpoints";
import type { Log } from "@holdfast/service/log";
import type { FastifyInstance, FastifyReply } from "fastify";
import { readInput } from "../api/input.ts";
import { auditForgery } from "../audit/forgeries.ts";
import { recordAudit } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import type { Authority } from "../identity/authority.ts";
import { enroll, enrollAsIngress } from "./enroll.ts";
import { markGatewayGone, storeGateway } from "./gateways.ts";
import type { News } from "./news.ts";
import { type InternalApi, internalRoute, internalStream } from "./route.ts";

export type InternalRouteOptions = {
  system: Sql;
  /** The service token that gateways prove they know; undefined: no gateway can enroll. */
  token: string | undefined;
  /** The ingress token that ingresses prove they know; undefined: no ingress can enroll. */
  ingressToken: string | undefined;
  /** The host names by which nodes reach an ingress. */
  ingressNames: readonly string[];
  /** Carried by the certificates of ingresses that are accepted. */
  ingressMark: string | undefined;
  /** Undefined: the CA that nodes trust is missing, and no certificate is issued. */
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

export function internalRoutes(api: InternalApi, options: InternalRouteOptions): void {
  enrollRoutes(api.http, options);

  internalRoute(api, announceGateway, async ({ body }) => {
    if (body.leaving) await markGatewayGone(options.system, body.instance_id);
    else await storeGateway(options.system, body);
    await options.onAnnounced();
    return {
      origins: options.origins(),
      ticket_keys: options.gatewayTicketKeys.toString("base64"),
      ingress_mark: options.ingressMark ?? null,
    };
  });

  internalRoute(api, reportForgedCertificates, async ({ body }) => {
    const { listener, address, count, correlation_id } = body;
    const forgery = { listener, address, count, correlationId: correlation_id };
    await auditForgery(options.system, options.log, forgery);
    return undefined;
  });

  internalStream(api, followServiceNews, ({ signal }, send) => options.news.follow(send, signal));
}

/** The only routes of the internal listener that are reached without a certificate. */
function enrollRoutes(http: FastifyInstance, options: InternalRouteOptions): void {
  const { authority, now, log } = options;

  http.post(enrollService.path, async (request, reply) => {
    const { body } = readInput(enrollService, request) as { body: BodyOf<typeof enrollService> };
    const answer = enroll(body, { token: options.token, authority, now: now() });
    const { service, instance_id } = body;
    log.info({ correlation_id: request.id, service, instance_id }, "issued a service certificate");
    return sendUnkept(reply, answer);
  });

  http.post(enrollIngress.path, async (request, reply) => {
    const { body } = readInput(enrollIngress, request) as { body: BodyOf<typeof enrollIngress> };
    const answer = enrollAsIngress(body, {
      ...{ token: options.ingressToken, authority, now: now() },
      names: options.ingressNames,
    });
    const { name } = body;
    const { names, not_after } = answer;
    await recordAudit(options.system, log, {
      orgId: null,
      by: { actor_type: "system", actor_id: null, actor_name: `ingress ${name}`, role: "system" },
      action: "ingress.enroll",
      target: { type: "ingress", id: null, name },
      result: "allowed",
      correlationId: request.id,
      details: { names, not_after },
    });
    return sendUnkept(reply, answer);
  });
}

function sendUnkept(reply: FastifyReply, answer: object): FastifyReply {
  reply.header("cache-control", "no-store").type("application/json; charset=utf-8");
  return reply.send(JSON.stringify(answer));
}
