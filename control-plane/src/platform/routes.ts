// The platform as a whole, for its operator.

import { createAdminLink, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { ApiError } from "@holdfast/contracts/errors";
import { version } from "@holdfast/service/version";
import type { ApiContext } from "../api/context.ts";
import { operatorRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { judgeWays } from "../identity/ingress-trust/decide.ts";
import { readKnown } from "../identity/ingress-trust/store.ts";
import { linkUrl, createAdminLink as storeAdminLink } from "../links/create.ts";
import { selectJobs } from "../mechanisms/background/stored.ts";
import { userIdOf } from "../people/actor.ts";
import { findUser, operators } from "../people/queries.ts";
import { PROCESS_SILENT_AFTER } from "./presence.ts";

export function platformRoutes(api: ApiContext): void {
  operatorRoute(api, getPlatformStatus, async ({ tx }) => {
    const [row] = await tx<StatusRow[]>`
      SELECT i.id AS instance_id, current_setting('server_version') AS server_version,
             (SELECT count(*)::int FROM schema_migrations) AS migrations,
             (SELECT max(last_seen_at) FROM processes WHERE kind = 'worker') AS worker_seen_at,
             coalesce((SELECT max(last_seen_at) > now() - ${PROCESS_SILENT_AFTER}::interval
                       FROM processes WHERE kind = 'worker'), false) AS worker_ok,
             EXISTS (SELECT FROM users WHERE operator) AS administrator_exists
      FROM installation i`;
    if (!row) throw new Error("the installation's own row is missing");
    const known = await readKnown(tx);
    return {
      instance_id: row.instance_id,
      version,
      worker: { ok: row.worker_ok, last_seen_at: row.worker_seen_at?.toISOString() ?? null },
      database: { ok: true, version: row.server_version, migrations: row.migrations },
      administrator_exists: row.administrator_exists,
      canaries: judgeWays(known.ways, known.now).map(
        ({ endpoint, url, address, ingress, state, why, checkedAt }) => ({
          ...{ endpoint, url, address: address || null, ingress, state, why, checked_at: checkedAt.toISOString() },
        }),
      ),
      jobs: await selectJobs(tx, api.declaredJobs, { silentAfter: PROCESS_SILENT_AFTER }),
    };
  });

  operatorRoute(api, createAdminLink, async ({ actor, body, tx, baseUrl, touched }) => {
    const admin =
      body.email === undefined ? chooseAdministrator(await operators(tx)) : await requireUser(tx, body.email);
    const link = await storeAdminLink(tx, admin, userIdOf(actor));
    touched({ type: "admin_link", id: link.id, name: admin?.email ?? "first administrator" });
    return {
      url: linkUrl(baseUrl, link.secret),
      email: admin?.email ?? null,
      expires_at: link.expiresAt.toISOString(),
    };
  });
}

type StatusRow = {
  instance_id: string;
  server_version: string;
  migrations: number;
  worker_seen_at: Date | null;
  worker_ok: boolean;
  administrator_exists: boolean;
};

type Account = { id: string; email: string };

/** Null: there is no administrator yet, so the link creates the first. */
function chooseAdministrator(known: Account[]): Account | null {
  const [only, another] = known;
  if (!another) return only ?? null;
  throw new ApiError("conflict", {
    message: "There are several administrators: specify which one the link is for.",
    details: { administrators: known.map((one) => one.email) },
  });
}

/** Anyone who lost their password, administrator or not. */
async function requireUser(tx: Tx, email: string): Promise<Account> {
  const user = await findUser(tx, email);
  if (!user) throw new ApiError("not_found", { message: `${email} has no account here.` });
  return { id: user.id, email: user.email };
}
