// Decides who calls and in which organization. An organization that does not exist and one that the caller has no access
// to get the same response.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { ORG_HEADER } from "@holdfast/contracts/headers";
import type { ActingRole } from "@holdfast/contracts/public/permissions";
import { uuidForm } from "@holdfast/kit/uuid";
import type { FastifyRequest } from "fastify";
import { type Actor, isOperator } from "../people/actor.ts";
import type { ApiContext } from "./context.ts";

export type ActingOrg = { id: string; role: ActingRole };

type WithHeaders = Pick<FastifyRequest, "headers"> & Partial<Pick<FastifyRequest, "ip">>;

export async function authenticate(api: ApiContext, request: WithHeaders): Promise<Actor | undefined> {
  const { authorization } = request.headers;
  if (authorization !== undefined) {
    const secret = /^Bearer (\S{1,200})$/i.exec(authorization)?.[1];
    return secret ? api.authenticator.fromBearer(secret) : undefined;
  }
  const session = api.cookies.session.read(request.headers.cookie);
  return session ? api.authenticator.fromSession(session, request.ip) : undefined;
}

/** A browser attaches cookies to requests of other sites too; the Origin header identifies them. */
export function refuseForeignOrigin(
  api: ApiContext,
  endpoint: Endpoint,
  request: FastifyRequest,
  actor: Actor | undefined,
): void {
  if (endpoint.method === "GET") return;
  if (request.headers.origin === undefined) {
    if (actor?.type === "user") throw new ApiError("origin_refused");
    return;
  }
  if (!api.isOwnOrigin(request.raw)) throw new ApiError("origin_refused");
}

/** The organization a request acts in: the path's, the header's, the token's, or the only one. */
export async function actingOrg(
  api: ApiContext,
  actor: Actor,
  request: WithHeaders,
  pathOrgId: string | undefined,
): Promise<ActingOrg> {
  const header = request.headers[ORG_HEADER];
  const named =
    pathOrgId?.toLowerCase() ?? (typeof header === "string" && header !== "" ? header.toLowerCase() : undefined);
  if (typeof header === "string" && header !== "" && header.toLowerCase() !== named)
    throw new ApiError("not_found");
  const own = organizationsOf(actor);
  if (named === undefined) {
    const [only, another] = own;
    if (only && !another) return only;
    if (own.length === 0 && isOperator(actor)) return onlyOrganization(api);
    throw new ApiError("organization_required");
  }
  const member = own.find((one) => one.id === named);
  if (member) return member;
  if (isOperator(actor) && uuidForm.test(named)) {
    const found = await api.system`SELECT FROM organizations WHERE id = ${named}`;
    if (found.length === 1) return { id: named, role: "operator" };
  }
  throw new ApiError("not_found", { message: "Organization not found, or you have no access to it." });
}

function organizationsOf(actor: Actor): ActingOrg[] {
  switch (actor.type) {
    case "user":
      return actor.organizations;
    case "token":
      return [actor.organization];
    case "local_operator":
      return [];
  }
}

/** An operator who names no organization means the only one there is. */
async function onlyOrganization(api: ApiContext): Promise<ActingOrg> {
  const found = await api.system<{ id: string }[]>`SELECT id FROM organizations ORDER BY id LIMIT 2`;
  const [only, another] = found;
  if (only && !another) return { id: only.id, role: "operator" };
  throw new ApiError("organization_required");
}
