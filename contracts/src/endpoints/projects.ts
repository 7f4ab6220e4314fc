// Projects: what an organization's allocations and workloads are grouped by.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { DisplayName, Id, Slug, Text, Time } from "../fields.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const Project = z.strictObject({ id: Id, slug: z.string(), name: z.string(), created_at: Time });
export type Project = z.infer<typeof Project>;

const params = z.strictObject({ project_id: Id });

export const listProjects = endpoint({
  name: "listProjects",
  noun: "projects",
  method: "GET",
  path: "/v1/projects",
  summary: "List the organization's projects",
  access: { scope: "projects:read" },
  query: PageQuery.extend({
    search: Text.min(1).max(100).optional().describe("Part of the name or slug, or the complete id."),
  }),
  answer: pageOf(Project),
});

export const createProject = endpoint({
  name: "createProject",
  noun: "projects",
  method: "POST",
  path: "/v1/projects",
  summary: "Create a project",
  access: { scope: "projects:write" },
  action: "project.create",
  creates: true,
  body: z.strictObject({ slug: Slug, name: DisplayName }),
  answer: Project,
  errors: ["name_taken"],
});

export const getProject = endpoint({
  name: "getProject",
  noun: "projects",
  method: "GET",
  path: "/v1/projects/{project_id}",
  summary: "Read a project",
  access: { scope: "projects:read" },
  params,
  answer: Project,
});

export const updateProject = endpoint({
  name: "updateProject",
  noun: "projects",
  method: "PATCH",
  path: "/v1/projects/{project_id}",
  summary: "Rename a project",
  access: { scope: "projects:write" },
  action: "project.update",
  params,
  body: z.strictObject({ name: DisplayName }),
  answer: Project,
});

export const deleteProject = endpoint({
  name: "deleteProject",
  noun: "projects",
  method: "DELETE",
  path: "/v1/projects/{project_id}",
  summary: "Delete a project",
  access: { scope: "projects:write" },
  action: "project.delete",
  params,
});
