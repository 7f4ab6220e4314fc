// Sign-in and sign-out, and what callers may read and change about themselves.

import { changePassword, getMe, type Me } from "@holdfast/contracts/endpoints/me";
import { signIn, signOut } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { type BrowserCall, publicRoute, signedInRoute } from "../api/route.ts";
import { auditActor, type NewAuditEvent, recordAudit } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { limits, networkOf, takeAttempt } from "../mechanisms/rate-limit.ts";
import { type Actor, describe, isOperator } from "./actor.ts";
import { forgetPasswordAttempts, rememberPlace, takePasswordAttempt } from "./attempts.ts";
import { hashPassword, verifyPassword } from "./passwords.ts";
import { findUser, findUserById } from "./queries.ts";
import { endSession, startSession } from "./sessions.ts";
import { countsOf, replacePassword } from "./sign-out.ts";

/** What /v1/me lists for an operator, who may act in every organization. */
const LISTED_ORGANIZATIONS = 200;

export function peopleRoutes(api: ApiContext): void {
  publicRoute(api, signIn, async (call) => {
    const { body, correlationId } = call;
    await takePasswordAttempt(api.system, body.email, call);
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
    await forgetPasswordAttempts(api.system, body.email, call);
    const started = await api.system.begin(async (tx) => {
      await recordOwnAct(api, tx, user, event);
      return openSession(tx, user.id, call);
    });
    return answerSignedIn(api, call, started);
  });

  publicRoute(api, signOut, async ({ actor, correlationId, setCookie }) => {
    setCookie(api.cookies.session.clear());
    if (actor?.type !== "user") return undefined;
    const target = { type: "user", id: actor.id, name: actor.email };
    await api.system.begin(async (tx) => {
      await endSession(tx, actor.id, actor.sessionId);
      await recordOwnAct(api, tx, actor, { action: "session.end", target, correlationId });
    });
    api.terminals.watch.look();
    return undefined;
  });

  signedInRoute(api, getMe, ({ actor }) => describeWithOrganizations(api, actor));

  signedInRoute(api, changePassword, async (call) => {
    const { actor, body, correlationId } = call;
    if (actor.type !== "user") {
      throw new ApiError("forbidden", {
        message: "Only a signed-in person has a password to change.",
        nextStep: "Sign in on the page, and change it there under Account.",
      });
    }
    const target = { type: "user", id: actor.id, name: actor.email };
    const event = { action: "user.change_password", target, correlationId };
    await takeAttempt(api.system, limits.accountFromAddress, "password", actor.id, networkOf(call.address));
    const user = await findUserById(api.system, actor.id);
    if (!(await verifyPassword(body.current_password, user?.password_hash))) {
      await recordAttempt(api, event, "sign_in_failed");
      throw new ApiError("sign_in_failed", {
        message: "The current password is wrong.",
        nextStep:
          "Enter the password that you sign in with now. An operator can send you a link to set a new one.",
      });
    }
    const passwordHash = await hashPassword(body.new_password);
    const { signedOut, closing, started } = await api.system.begin(async (tx) => {
      const changed = await replacePassword(tx, {
        ...{ user: actor, passwordHash, revokeTokens: body.revoke_tokens, because: event.action },
        ...{ correlationId, log: api.log },
      });
      await recordOwnAct(api, tx, actor, { ...event, details: countsOf(changed.signedOut) });
      // Copies of the old cookie are no longer accepted; this browser gets a new session.
      return { ...changed, started: await openSession(tx, actor.id, call) };
    });
    api.terminals.watch.closing(closing);
    await answerSignedIn(api, call, started);
    return signedOut;
  });
}

export type Admitted = { session: string; device: string };

/** In the transaction that verified the person: creates a session, and remembers the device and the network. */
export async function openSession(
  tx: Tx,
  userId: string,
  from: Pick<BrowserCall<unknown>, "address" | "userAgent" | "device">,
): Promise<Admitted> {
  const device = await rememberPlace(tx, userId, from);
  return { session: await startSession(tx, userId, from), device };
}

/** After the commit: sets the cookies, and returns who the person is. */
export async function answerSignedIn(
  api: ApiContext,
  { setCookie }: Pick<BrowserCall<unknown>, "setCookie">,
  { session, device }: Admitted,
): Promise<Me> {
  setCookie(api.cookies.session.set(session));
  setCookie(api.cookies.device.set(device));
  const actor = await api.authenticator.fromSession(session);
  if (!actor) throw new Error("the new session was not accepted");
  return describeWithOrganizations(api, actor);
}

type OwnAct = Pick<NewAuditEvent, "action" | "target" | "correlationId" | "details">;

/** Records what a person did with their own account, in no organization. */
export async function recordOwnAct(
  api: ApiContext,
  tx: Tx,
  user: { id: string; email: string },
  act: OwnAct,
): Promise<void> {
  const by = { actor_type: "user", actor_id: user.id, actor_name: user.email, role: "none" } as const;
  await recordAudit(tx, api.log, { orgId: null, by, ...act, result: "allowed" });
}

/** Records a failed attempt of somebody whose identity was not verified. */
export async function recordAttempt(api: ApiContext, act: OwnAct, reason: ErrorCode): Promise<void> {
  const by = auditActor(undefined, "none");
  await recordAudit(api.system, api.log, { orgId: null, by, ...act, result: "failed", reason });
}

async function describeWithOrganizations(api: ApiContext, actor: Actor) {
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
