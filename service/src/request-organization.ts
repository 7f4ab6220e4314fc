// The organization in which a request acts, for its log line: by it the line is found to belong to that organization.

import type { FastifyRequest } from "fastify";

const organizations = new WeakMap<FastifyRequest, string>();

export function noteOrganization(request: FastifyRequest, orgId: string): void {
  organizations.set(request, orgId);
}

/** Undefined: in none, or not known yet. */
export function organizationOf(request: FastifyRequest): string | undefined {
  return organizations.get(request);
}
