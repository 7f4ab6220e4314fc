// One-time links over HTTP. The page posts the secret that it found in its own URL's fragment.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import { inspectLink, redeemLink } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError } from "@holdfast/contracts/errors";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { ApiContext } from "../api/context.ts";
import { publicRoute } from "../api/route.ts";
import { recordAudit } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { hashPassword, verifyPassword } from "../people/passwords.ts";
import { findUserById, insertMembership, startSession } from "../people/queries.ts";
import { limits, networkOf, takeAttempt } from "../people/rate-limit.ts";
import { describeWithOrganizations, recordAttempt, signedInAs } from "../people/routes.ts";
import {
  admitFirstAdmin,
  admitInvited,
  consume,
  inspect,
  type LinkRow,
  type Newcomer,
  resetPassword,
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
      known_user: link.known_user_id !== null,
      expires_at: link.expires_at.toISOString(),
    };
  });

  publicRoute(api, redeemLink, async ({ body, address, correlationId, setCookie }) => {
    await takeAttempt(api.system, limits.address, "link", networkOf(address));
    const link = await inspect(api.system, body.secret);
    const admit = await prepare(api, link, body, correlationId);
    const secret = await api.system.begin(async (tx) => {
      await consume(tx, body.secret);
      const user = await admit(tx);
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
      });
      return startSession(tx, user.id);
    });
    setCookie(api.cookie.set(secret));
    return describeWithOrganizations(api, await signedInAs(api, secret));
  });
}

type Admitted = { id: string; email: string };

/** Checks all the person gave and does the slow hashing, so that the transaction itself is short. */
async function prepare(
  api: ApiContext,
  link: LinkRow,
  body: BodyOf<typeof redeemLink>,
  correlationId: string,
): Promise<(tx: Tx) => Promise<Admitted>> {
  switch (link.purpose) {
    case "first_admin": {
      const person = await newcomer(body, body.email ?? missing("email"));
      return (tx) => admitFirstAdmin(tx, person);
    }
    case "sign_in": {
      const user = { id: link.user_id ?? missing("user"), email: link.email ?? "" };
      const passwordHash = await hashPassword(body.password);
      return async (tx) => {
        await resetPassword(tx, user.id, passwordHash);
        return user;
      };
    }
    case "invitation": {
      if (link.known_user_id) {
        const attempt = {
          action: "link.redeem",
          target: { type: link.purpose, id: link.id, name: link.email },
          correlationId,
        };
        return existingAccount(api, link.known_user_id, body.password, () =>
          recordAttempt(api, attempt, "sign_in_failed"),
        );
      }
      const person = await newcomer(body, link.email ?? missing("email"));
      return (tx) => admitInvited(tx, person);
    }
    default:
      return exhaustive(link.purpose);
  }
}

/**
 * Somebody who has an account joins with the password they have. To set a new one here would let
 * any organization's administrator take over any account by inviting it.
 */
async function existingAccount(api: ApiContext, userId: string, password: string, onWrong: () => Promise<void>) {
  const user = await findUserById(api.system, userId);
  // The same count as at sign-in: a link is no second chance to guess.
  if (user) await takeAttempt(api.system, limits.account, "sign-in", user.email);
  if (!user || !(await verifyPassword(password, user.password_hash))) {
    await onWrong();
    throw new ApiError("sign_in_failed", {
      message: "This account exists already, and the password is not its own.",
    });
  }
  return async () => user;
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
