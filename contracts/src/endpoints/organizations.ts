// Organizations: the tenants.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { DisplayName, Id, Slug, Time } from "../fields.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const Organization = z.strictObject({ id: Id, slug: z.string(), name: z.string(), created_at: Time });
export type Organization = z.infer<typeof Organization>;

const params = z.strictObject({ org_id: Id });

export const listOrganizations = endpoint({
  name: "listOrganizations",
  noun: "organizations",
  method: "GET",
  path: "/v1/orgs",
  summary: "List the organizations I can act in",
  access: "signed-in",
  query: PageQuery,
  answer: pageOf(Organization),
});

export const createOrganization = endpoint({
  name: "createOrganization",
  noun: "organizations",
  method: "POST",
  path: "/v1/orgs",
  summary: "Create an organization with its first project, `default`",
  access: "operator",
  action: "organization.create",
  creates: true,
  body: z.strictObject({ slug: Slug, name: DisplayName }),
  answer: Organization,
  errors: ["name_taken"],
});

export const getOrganization = endpoint({
  name: "getOrganization",
  noun: "organizations",
  method: "GET",
  path: "/v1/orgs/{org_id}",
  summary: "Read an organization",
  access: { scope: "org:read" },
  params,
  answer: Organization,
});

export const updateOrganization = endpoint({
  name: "updateOrganization",
  noun: "organizations",
  method: "PATCH",
  path: "/v1/orgs/{org_id}",
  summary: "Rename an organization",
  access: { scope: "org:write" },
  action: "organization.update",
  params,
  body: z.strictObject({ name: DisplayName }),
  answer: Organization,
});
