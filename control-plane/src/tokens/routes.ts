// API tokens over HTTP. A token never has more permissions than its creator.

import { createToken, listTokens, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { ApiError } from "@holdfast/contracts/errors";
import { mayGrant, type Scope, scopesOfRole } from "@holdfast/contracts/public/permissions";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { rankTooLow, requireRank } from "../api/rank.ts";
import { type OrgCall, orgRoute } from "../api/route.ts";
import { makeSecret } from "../mechanisms/secrets.ts";
import { userIdOf } from "../people/actor.ts";
import { endIssued, endingOf } from "./issued.ts";
import { insertToken, makerOf, selectToken, selectTokens, type TokenRow, toApiToken } from "./queries.ts";

export function tokenRoutes(api: ApiContext): void {
  orgRoute(api, listTokens, async (call) => {
    const before = pageStart(listTokens, call.query.cursor);
    const { limit } = call.query;
    const rows = seesAll(call)
      ? await selectTokens(call.tx, null, { before, limit })
      : await selectTokens(call.tx, ownerOf(call), { before, limit });
    return toPage(listTokens, rows, { limit, idOf: (row) => row.id, toItem: toApiToken });
  });

  orgRoute(api, createToken, async (call) => {
    const { body, org, tx } = call;
    const scopes = grantedScopes(call);
    const { secret, hash } = makeSecret("apiToken");
    const id = await insertToken(tx, {
      orgId: org.id,
      name: body.name,
      hash,
      role: body.role,
      scopes,
      ...(await makerOf(tx, call.actor)),
      expiresInDays: body.expires_in_days ?? null,
    });
    const row = await selectToken(tx, id);
    if (!row) throw new Error("a token is missing in its own transaction");
    call.touched({ type: "token", id, name: body.name }, { role: body.role, scopes });
    return { ...toApiToken(row), token: secret };
  });

  orgRoute(api, revokeToken, async (call) => {
    const row = await selectToken(call.tx, call.params.token_id);
    if (!row || !maySee(call, row)) throw new ApiError("not_found");
    if (!isOwn(call, row)) requireRank(call, row.role);
    const ended = await endIssued(call.tx, { apiToken: row.id }, endingOf(api, call, "token.revoke"));
    call.touched({ type: "token", id: row.id, name: row.name }, { ended: ended.length });
    call.afterCommit(api.terminals.watch.look);
    return { ended };
  });
}

/** The scopes a new token gets, or a refusal that names what the caller lacks. */
function grantedScopes({ actor, body, org }: OrgCall<typeof createToken>): Scope[] | null {
  if (!mayGrant(org.role, body.role)) throw rankTooLow(org.role, body.role);
  const requested = body.scopes && [...new Set(body.scopes)];
  const beyondRole = requested?.filter((scope) => !scopesOfRole[body.role].has(scope)) ?? [];
  if (beyondRole.length > 0) {
    throw new ApiError("invalid_request", {
      message: `The role ${body.role} does not include ${beyondRole.join(", ")}; request a higher role.`,
      details: { fields: [{ field: "body.scopes", problem: `not part of the role ${body.role}` }] },
    });
  }
  // A narrowed token can grant at most its own scopes.
  if (actor.type !== "token" || actor.scopes === null) return requested ?? null;
  const own = new Set(actor.scopes);
  const beyondOwn = requested?.filter((scope) => !own.has(scope)) ?? [];
  if (beyondOwn.length > 0) throw new ApiError("forbidden", { details: { needed: beyondOwn.join(", ") } });
  return requested ?? [...scopesOfRole[body.role]].filter((scope) => own.has(scope));
}

function seesAll({ org }: Pick<OrgCall<unknown>, "org">): boolean {
  return org.role !== "member";
}

/** A token without a person behind it (made by the local operator) owns nothing but itself. */
function ownerOf({ actor }: Pick<OrgCall<unknown>, "actor">): string {
  return userIdOf(actor) ?? "00000000-0000-0000-0000-000000000000";
}

function maySee(call: Pick<OrgCall<unknown>, "org" | "actor">, row: TokenRow): boolean {
  return seesAll(call) || isOwn(call, row);
}

function isOwn({ actor }: Pick<OrgCall<unknown>, "actor">, row: TokenRow): boolean {
  return row.created_by === ownerOf({ actor }) || (actor.type === "token" && actor.id === row.id);
}
