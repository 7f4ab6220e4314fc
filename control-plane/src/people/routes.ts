// Signing in and out, and what a caller may know and change about themselves.

import { changePassword, getMe } from "@holdfast/contracts/endpoints/me";
import { signIn, signOut } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { publicRoute, signedInRoute } from "../api/route.ts";
import { auditActor, type NewAuditEvent, recordAudit } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { type Actor, describe, isOperator } from "./actor.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";
import { endSession, endSessionsOf, findUser, findUserById, setPassword, startSession } from "./queries.ts";
import { forgetAttempts, limits, networkOf, takeAttempt } from "./rate-limit.ts";

/** What /v1/me lists for an operator, who may act in every organization. */
const LISTED_ORGANIZATIONS = 200;

export function peopleRoutes(api: ApiContext): void {
  publicRoute(api, signIn, async ({ body, address, correlationId, setCookie }) => {
    const from = networkOf(address);
    // The narrow limit first: attempts it refuses must not count against the account everywhere,
    // or one address could lock anybody out.
    await takeAttempt(api.system, limits.address, "sign-in", from);
    await takeAttempt(api.system, limits.accountFromAddress, "sign-in", body.email, from);
    await takeAttempt(api.system, limits.account, "sign-in", body.email);
    const user = await findUser(api.system, body.email);
    const right = await verifyPassword(body.password, user?.password_hash);
    const event = {
      action: "session.create",
      target: { type: "user", id: user?.id ?? null, name: body.email },
      correlationId,
    };
    if (!user || !right) {
      await recordAttempt(api, event, "sign_in_failed");
      throw new ApiError("sign_in_failed");
    }
    await forgetAttempts(api.system, "sign-in", body.email, from);
    const secret = await api.system.begin(async (tx) => {
      await recordOwnAct(api, tx, user, event);
      return startSession(tx, user.id);
    });
    setCookie(api.cookie.set(secret));
    return describeWithOrganizations(api, await signedInAs(api, secret));
  });

  publicRoute(api, signOut, async ({ actor, correlationId, setCookie }) => {
    setCookie(api.cookie.clear());
    if (actor?.type !== "user") return undefined;
    const target = { type: "user", id: actor.id, name: actor.email };
    await api.system.begin(async (tx) => {
      await endSession(tx, actor.sessionId);
      await recordOwnAct(api, tx, actor, { action: "session.end", target, correlationId });
    });
    return undefined;
  });

  signedInRoute(api, getMe, ({ actor }) => describeWithOrganizations(api, actor));

  signedInRoute(api, changePassword, async ({ actor, body, address, correlationId }) => {
    if (actor.type !== "user") {
      throw new ApiError("forbidden", {
        message: "Only a signed-in person has a password to change.",
        nextStep: "Sign in on the page, and change it there under Account.",
      });
    }
    const target = { type: "user", id: actor.id, name: actor.email };
    const event = { action: "user.change_password", target, correlationId };
    await takeAttempt(api.system, limits.accountFromAddress, "password", actor.id, networkOf(address));
    const user = await findUserById(api.system, actor.id);
    if (!(await verifyPassword(body.current_password, user?.password_hash))) {
      await recordAttempt(api, event, "sign_in_failed");
      throw new ApiError("sign_in_failed", {
        message: "The current password is wrong.",
        nextStep: "Type the password you sign in with now. An operator can give you a link to set a new one.",
      });
    }
    const passwordHash = await hashPassword(body.new_password);
    await api.system.begin(async (tx) => {
      await setPassword(tx, actor.id, passwordHash);
      await endSessionsOf(tx, actor.id, actor.sessionId);
      await recordOwnAct(api, tx, actor, event);
    });
    return undefined;
  });
}

type OwnAct = Pick<NewAuditEvent, "action" | "target" | "correlationId">;

/** What a person did with their own account, in no organization. */
async function recordOwnAct(
  api: ApiContext,
  tx: Tx,
  user: { id: string; email: string },
  act: OwnAct,
): Promise<void> {
  const by = { actor_type: "user", actor_id: user.id, actor_name: user.email, role: "none" } as const;
  await recordAudit(tx, api.log, { orgId: null, by, ...act, result: "allowed" });
}

/** Somebody who could not prove to be that person. */
export async function recordAttempt(api: ApiContext, act: OwnAct, reason: ErrorCode): Promise<void> {
  const by = auditActor(undefined, "none");
  await recordAudit(api.system, api.log, { orgId: null, by, ...act, result: "failed", reason });
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
