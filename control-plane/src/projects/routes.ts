// Projects over HTTP.

import {
  createProject,
  deleteProject,
  getProject,
  listProjects,
  updateProject,
} from "@holdfast/contracts/endpoints/projects";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import {
  insertProject,
  removeProject,
  renameProject,
  selectProject,
  selectProjects,
  toProject,
} from "./queries.ts";

export function projectRoutes(api: ApiContext): void {
  orgRoute(api, listProjects, async ({ query, tx }) => {
    const before = pageStart(listProjects, query.cursor);
    const rows = await selectProjects(tx, query, { before, limit: query.limit });
    return toPage(listProjects, rows, { limit: query.limit, idOf: (row) => row.id, toItem: toProject });
  });

  orgRoute(api, createProject, async ({ body, org, tx, touched }) => {
    const row = await insertProject(tx, org.id, body);
    if (!row) throw new ApiError("name_taken", { message: `The project "${body.slug}" exists already.` });
    touched({ type: "project", id: row.id, name: row.slug });
    return toProject(row);
  });

  orgRoute(api, getProject, async ({ params, tx }) => {
    const row = await selectProject(tx, params.project_id);
    if (!row) throw new ApiError("not_found");
    return toProject(row);
  });

  orgRoute(api, updateProject, async ({ params, body, tx, touched }) => {
    const row = await renameProject(tx, params.project_id, body.name);
    if (!row) throw new ApiError("not_found");
    touched({ type: "project", id: row.id, name: row.slug }, { name: body.name });
    return toProject(row);
  });

  orgRoute(api, deleteProject, async ({ params, tx, touched }) => {
    const row = await removeProject(tx, params.project_id).catch(explainUse);
    if (!row) throw new ApiError("not_found");
    touched({ type: "project", id: row.id, name: row.slug });
    return undefined;
  });
}

function explainUse(error: { code?: string }): never {
  // foreign_key_violation
  if (error.code !== "23503") throw error;
  throw new ApiError("conflict", {
    message: "The project has allocations, or had some that its history still names.",
    nextStep: "Release its allocations and leave it unused; rename it if its name is wanted for another.",
  });
}
