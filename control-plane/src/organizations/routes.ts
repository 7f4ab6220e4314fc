// Organizations over HTTP.

import {
  createOrganization,
  getOrganization,
  listOrganizations,
  updateOrganization,
} from "@holdfast/contracts/endpoints/organizations";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { operatorRoute, orgRoute, signedInRoute } from "../api/route.ts";
import { isOperator, userIdOf } from "../people/actor.ts";
import {
  insertOrganization,
  renameOrganization,
  selectOrganization,
  selectOrganizations,
  toOrganization,
} from "./queries.ts";

export function organizationRoutes(api: ApiContext): void {
  signedInRoute(api, listOrganizations, async ({ actor, query }) => {
    const which = {
      all: isOperator(actor),
      userId: userIdOf(actor),
      orgId: actor.type === "token" ? actor.organization.id : null,
    };
    const before = pageStart(listOrganizations, query.cursor);
    const rows = await selectOrganizations(api.system, which, { before, limit: query.limit });
    return toPage(listOrganizations, rows, { limit: query.limit, idOf: (row) => row.id, toItem: toOrganization });
  });

  operatorRoute(api, createOrganization, async ({ body, tx, touched }) => {
    const row = await insertOrganization(tx, body);
    if (!row) throw new ApiError("name_taken", { message: `The organization "${body.slug}" exists already.` });
    touched({ type: "organization", id: row.id, name: row.slug, orgId: row.id });
    return toOrganization(row);
  });

  orgRoute(api, getOrganization, async ({ params, tx }) => {
    const row = await selectOrganization(tx, params.org_id);
    if (!row) throw new ApiError("not_found");
    return toOrganization(row);
  });

  orgRoute(api, updateOrganization, async ({ params, body, tx, touched }) => {
    const row = await renameOrganization(tx, params.org_id, body.name);
    if (!row) throw new ApiError("not_found");
    touched({ type: "organization", id: row.id, name: row.slug }, { name: body.name });
    return toOrganization(row);
  });
}
