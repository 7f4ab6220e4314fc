// The sessions of a person over HTTP: list them, end one, or end all of them.

import {
  endSession as end,
  signOutEverywhere as endAll,
  listMyTokens,
  listSessions,
} from "@holdfast/contracts/endpoints/sessions";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { signedInRoute } from "../api/route.ts";
import { listIssued } from "../tokens/issued.ts";
import type { Actor } from "./actor.ts";
import { recordOwnAct } from "./routes.ts";
import { endSession, selectSessions, toSession } from "./sessions.ts";
import { countsOf, signOutEverywhere } from "./sign-out.ts";

export function sessionRoutes(api: ApiContext): void {
  signedInRoute(api, listSessions, async ({ actor }) => {
    const person = personOf(actor);
    const rows = await selectSessions(api.system, person.id);
    return { items: rows.map((row) => toSession(row, actor.type === "user" ? actor.sessionId : undefined)) };
  });

  signedInRoute(api, listMyTokens, async ({ actor }) => {
    const person = personOf(actor);
    return { items: await api.system.begin((tx) => listIssued(tx, { person: person.id })) };
  });

  signedInRoute(api, end, async ({ actor, params, correlationId, setCookie }) => {
    const person = personOf(actor);
    const id = params.session_id;
    await api.system.begin(async (tx) => {
      if (!(await endSession(tx, person.id, id))) throw new ApiError("not_found");
      const target = { type: "session", id, name: person.email };
      await recordOwnAct(api, tx, person, { action: "session.revoke", target, correlationId });
    });
    if (actor.type === "user" && actor.sessionId === id) setCookie(api.cookies.session.clear());
    api.terminals.watch.look();
    return undefined;
  });

  signedInRoute(api, endAll, async ({ actor, body, correlationId, setCookie }) => {
    const person = personOf(actor);
    const { signedOut, closing } = await api.system.begin(async (tx) => {
      const ended = await signOutEverywhere(tx, {
        ...{ user: person, revokeTokens: body.revoke_tokens, because: "session.end_all" },
        ...{ correlationId, log: api.log },
      });
      const target = { type: "user", id: person.id, name: person.email };
      const details = countsOf(ended.signedOut);
      await recordOwnAct(api, tx, person, { action: "session.end_all", target, correlationId, details });
      return ended;
    });
    if (actor.type === "user") setCookie(api.cookies.session.clear());
    api.terminals.watch.closing(closing);
    return signedOut;
  });
}

/** An API token may act for the person who created it, unless its scopes are limited. */
function personOf(actor: Actor): { id: string; email: string } {
  if (actor.type === "user") return actor;
  if (actor.type === "token" && actor.scopes === null && actor.person) {
    return { id: actor.person.id, email: actor.person.name };
  }
  throw new ApiError("forbidden", {
    message:
      "Only a person has sessions. Sign in, or use an API token that a person created without limiting its scopes.",
    nextStep: "On the command line: `holdfast login`, then try again without `--local`.",
  });
}
