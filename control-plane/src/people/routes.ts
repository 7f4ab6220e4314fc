// Signing in and out, and what a caller may know and change about themselves.

import { changePassword, getMe } from "@holdfast/contracts/endpoints/me";
import { signIn, signOut } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { publicRoute, signedInRoute } from "../api/route.ts";
import { auditActor, recordAudit } from "../audit/record.ts";
import { type Actor, describe, isOperator } from "./actor.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";
import { endSession, endSessionsOf, findUser, findUserById, setPassword, startSession } from "./queries.ts";
import { forgetAttempts, limits, takeAttempt } from "./rate-limit.ts";

/** What /v1/me lists for an operator, who may act in every organization. */
const LISTED_ORGANIZATIONS = 200;

export function peopleRoutes(api: ApiContext): void {
  publicRoute(api, signIn, async ({ body, address, correlationId, setCookie }) => {
    const pair = ["sign-in", body.email, address];
    await takeAttempt(api.system, limits.address, "sign-in", address);
    await takeAttempt(api.system, limits.account, "sign-in", body.email);
    await takeAttempt(api.system, limits.accountFromAddress, ...pair);
    const user = await findUser(api.system, body.email);
    const right = await verifyPassword(body.password, user?.password_hash);
    const target = { type: "user", id: user?.id ?? null, name: body.email };
    const event = { orgId: null, action: "session.create", target, correlationId };
    if (!user || !right) {
      const by = auditActor(undefined, "none");
      await recordAudit(api.system, api.log, { ...event, by, result: "failed", reason: "sign_in_failed" });
      throw new ApiError("sign_in_failed");
    }
    await forgetAttempts(api.system, ...pair);
    const secret = await startSession(api.system, user.id);
    const actor = await signedInAs(api, secret);
    await recordAudit(api.system, api.log, { ...event, by: auditActor(actor, "none"), result: "allowed" });
    setCookie(api.cookie.set(secret));
    return describeWithOrganizations(api, actor);
  });

  publicRoute(api, signOut, async ({ actor, correlationId, setCookie }) => {
    setCookie(api.cookie.clear());
    if (actor?.type !== "user") return undefined;
    await endSession(api.system, actor.sessionId);
    await recordAudit(api.system, api.log, {
      orgId: null,
      by: auditActor(actor, "none"),
      action: "session.end",
      target: { type: "user", id: actor.id, name: actor.email },
      result: "allowed",
      correlationId,
    });
    return undefined;
  });

  signedInRoute(api, getMe, ({ actor }) => describeWithOrganizations(api, actor));

  signedInRoute(api, changePassword, async ({ actor, body, address, correlationId }) => {
    if (actor.type !== "user") {
      throw new ApiError("forbidden", { message: "Only a signed-in person has a password to change." });
    }
    await takeAttempt(api.system, limits.accountFromAddress, "password", actor.id, address);
    const user = await findUserById(api.system, actor.id);
    if (!(await verifyPassword(body.current_password, user?.password_hash))) {
      throw new ApiError("sign_in_failed", {
        message: "The current password is wrong.",
        nextStep: "Type the password you sign in with now. An administrator can give you a link to set a new one.",
      });
    }
    const passwordHash = await hashPassword(body.new_password);
    await api.system.begin(async (tx) => {
      await setPassword(tx, actor.id, passwordHash);
      await endSessionsOf(tx, actor.id, actor.sessionId);
      await recordAudit(tx, api.log, {
        orgId: null,
        by: auditActor(actor, "none"),
        action: "user.change_password",
        target: { type: "user", id: actor.id, name: actor.email },
        result: "allowed",
        correlationId,
      });
    });
    return undefined;
  });
}

export async function signedInAs(api: ApiContext, sessionSecret: string): Promise<Actor> {
  const actor = await api.authenticator.fromSession(sessionSecret);
  if (!actor) throw new Error("a new session does not authenticate");
  return actor;
}

export async function describeWithOrganizations(api: ApiContext, actor: Actor) {
  const own = actor.type === "user" ? actor.organizations : actor.type === "token" ? [actor.organization] : [];
  if (!isOperator(actor)) return describe(actor, own);
  const all = await api.system<{ id: string; slug: string; name: string }[]>`
    SELECT id, slug, name FROM organizations ORDER BY name, id LIMIT ${LISTED_ORGANIZATIONS}`;
  const roles = new Map(own.map((one) => [one.id, one.role]));
  return describe(
    actor,
    all.map((one) => ({ ...one, role: roles.get(one.id) ?? "operator" })),
  );
}
