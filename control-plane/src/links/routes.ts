// One-time links over HTTP. The page posts the secret that it found in its own URL's fragment.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import { inspectLink, redeemLink } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { ApiContext } from "../api/context.ts";
import { type PublicCall, publicRoute } from "../api/route.ts";
import { recordAudit } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { limits, networkOf, takeAttempt } from "../mechanisms/rate-limit.ts";
import { takePasswordAttempt } from "../people/attempts.ts";
import { hashPassword, verifyPassword } from "../people/passwords.ts";
import { findUser, insertMembership } from "../people/queries.ts";
import { answerSignedIn, openSession, recordAttempt } from "../people/routes.ts";
import { countsOf, replacePassword } from "../people/sign-out.ts";
import {
  accountExists,
  admitFirstAdmin,
  admitInvited,
  consume,
  inspect,
  type LinkRow,
  type Newcomer,
} from "./redeem.ts";

export function linkRoutes(api: ApiContext): void {
  publicRoute(api, inspectLink, async ({ body, address }) => {
    await takeAttempt(api.system, limits.address, "link", networkOf(address));
    const link = await inspect(api.system, body.secret);
    return {
      purpose: link.purpose,
      email: link.email,
      organization: link.organization,
      role: link.role,
      expires_at: link.expires_at.toISOString(),
    };
  });

  publicRoute(api, redeemLink, async (call) => {
    const { body, address, correlationId } = call;
    await takeAttempt(api.system, limits.address, "link", networkOf(address));
    const link = await inspect(api.system, body.secret);
    const enter = await prepare(api, link, call);
    const { started, closing } = await api.system.begin(async (tx) => {
      await consume(tx, body.secret);
      const { user, closing = [], details } = await enter(tx);
      if (link.org_id && link.role) {
        await insertMembership(tx, { orgId: link.org_id, userId: user.id, role: link.role });
      }
      await recordAudit(tx, api.log, {
        orgId: link.org_id,
        by: { actor_type: "user", actor_id: user.id, actor_name: user.email, role: link.role ?? "operator" },
        action: "link.redeem",
        target: { type: link.purpose, id: link.id, name: user.email },
        result: "allowed",
        correlationId,
        ...(details ? { details } : {}),
      });
      return { started: await openSession(tx, user.id, call), closing };
    });
    api.terminals.watch.closing(closing);
    return answerSignedIn(api, call, started);
  });
}

type Entered = { user: { id: string; email: string }; closing?: string[]; details?: Record<string, unknown> };
type Redeeming = PublicCall<typeof redeemLink>;

/** Validates the input and does the slow hashing, so that the transaction itself is short. */
async function prepare(api: ApiContext, link: LinkRow, call: Redeeming): Promise<(tx: Tx) => Promise<Entered>> {
  const { body } = call;
  switch (link.purpose) {
    case "first_admin": {
      const person = await newcomer(body, body.email ?? missing("email"));
      return async (tx) => ({ user: await admitFirstAdmin(tx, person) });
    }
    case "sign_in":
      return newPassword(api, link, call);
    case "invitation": {
      const email = link.email ?? missing("email");
      const onRefused = (code: ErrorCode) => {
        const target = { type: link.purpose, id: link.id, name: email };
        return recordAttempt(api, { action: "link.redeem", target, correlationId: call.correlationId }, code);
      };
      if (body.name === undefined) return existingAccount(api, email, call, onRefused);
      const person = await newcomer(body, email);
      if (await findUser(api.system, email)) {
        await onRefused("name_taken");
        throw accountExists(email);
      }
      return async (tx) => ({ user: await admitInvited(tx, person) });
    }
    default:
      return exhaustive(link.purpose);
  }
}

/** A reset by a link counts as a change of the password. */
async function newPassword(api: ApiContext, link: LinkRow, { body, correlationId }: Redeeming) {
  const user = { id: link.user_id ?? missing("user"), email: link.email ?? "" };
  const passwordHash = await hashPassword(body.password);
  return async (tx: Tx): Promise<Entered> => {
    const { signedOut, closing } = await replacePassword(tx, {
      ...{ user, passwordHash, revokeTokens: body.revoke_tokens, because: "link.redeem" },
      ...{ correlationId, log: api.log },
    });
    return { user, closing, details: countsOf(signedOut) };
  };
}

/**
 * A person who has an account joins with their present password. Setting a new one here would let any organization's
 * administrator take over any account by inviting it. A missing account is refused like a wrong password, because
 * whoever invited holds the link too, and must not learn who has an account elsewhere.
 */
async function existingAccount(
  api: ApiContext,
  email: string,
  call: Redeeming,
  onRefused: (code: ErrorCode) => Promise<void>,
): Promise<() => Promise<Entered>> {
  // Shares the rate limit of sign-in, so that a link allows no additional guesses.
  await takePasswordAttempt(api.system, email, call);
  const user = await findUser(api.system, email);
  if ((await verifyPassword(call.body.password, user?.password_hash)) && user) return async () => ({ user });
  await onRefused("sign_in_failed");
  throw new ApiError("sign_in_failed", {
    message: `No account matches ${email} and this password.`,
    nextStep: "Check the password. If you have no account yet, choose “I am new here”.",
  });
}

async function newcomer(body: BodyOf<typeof redeemLink>, email: string): Promise<Newcomer> {
  const name = body.name ?? missing("name");
  return { email, name, passwordHash: await hashPassword(body.password) };
}

function missing(field: string): never {
  throw new ApiError("invalid_request", {
    details: { fields: [{ field: `body.${field}`, problem: "required for this link" }] },
  });
}
