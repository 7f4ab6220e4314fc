// Every code that an endpoint can answer with: those it names itself, and those that follow from who may call it and
// what it takes. `control-plane/test/refusals.test.ts` compares this with what a running server answers.

import type { Access, Endpoint, Method } from "./endpoint.ts";
import { certificateFaults } from "./errors/nodes.ts";
import { type ErrorCode, errorCatalogue } from "./errors.ts";

/** Of every listener, before it looks at the endpoint; and of whatever stands behind all of them. */
const always: readonly ErrorCode[] = [
  ...(["host_refused", "certificate_header_refused", "shutting_down"] as const),
  // A query that the endpoint does not take is refused everywhere.
  ...(["unknown_field", "database_unavailable", "internal_error"] as const),
];

/** Of identity and permission. */
const byAccess: Record<Exclude<Access, object> | "scope", readonly ErrorCode[]> = {
  public: [],
  "signed-in": ["unauthenticated"],
  operator: ["unauthenticated", "forbidden"],
  scope: ["unauthenticated", "forbidden", "not_found"],
  node: [
    ...(["certificate_missing", "certificate_untrusted", "certificate_unusable"] as const),
    ...certificateFaults,
    ...(["node_mismatch", "ingress_identity_refused", "rate_limit_exceeded"] as const),
  ],
  service: ["service_identity_refused"],
};

/** A GET has no body that is read, and changes nothing that another site could want changed. */
function ofBody({ method, rawBody }: Endpoint): readonly ErrorCode[] {
  if (method === "GET") return [];
  return rawBody ? ["body_too_large"] : ["malformed_json", "body_too_large", "unsupported_media_type"];
}

export function refusalsOf(endpoint: Endpoint): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...always,
    ...byAccess[accessKind(endpoint.access)],
    ...(choosesOrg(endpoint) ? (["organization_required"] as const) : []),
    ...ofBody(endpoint),
    ...(takesInput(endpoint) ? (["invalid_request"] as const) : []),
    ...(checksOrigin(endpoint.access, endpoint.method) ? (["origin_refused"] as const) : []),
    ...(endpoint.params && takesForeignIds(endpoint.access) ? [endpoint.unknownId ?? "not_found"] : []),
    ...(endpoint.creates ? (["idempotency_key_reused"] as const) : []),
    ...(endpoint.errors ?? []),
  ]);
  return [...codes].sort((a, b) => errorCatalogue[a].status - errorCatalogue[b].status || a.localeCompare(b));
}

/** A code as the endpoint sends it: in capitals, where callers of another system expect them. */
export function sentCode({ upperCaseCodes }: Pick<Endpoint, "upperCaseCodes">, code: string): string {
  return upperCaseCodes ? code.toUpperCase() : code;
}

function accessKind(access: Access): keyof typeof byAccess {
  return typeof access === "object" ? "scope" : access;
}

/** A path that names the organization leaves no choice. */
function choosesOrg({ access, path }: Endpoint): boolean {
  return typeof access === "object" && !path.includes("{org_id}");
}

/** Every other method may be sent a body, also where none is wanted. */
function takesInput({ params, query, method }: Endpoint): boolean {
  return params !== undefined || query !== undefined || method !== "GET";
}

function checksOrigin(access: Access, method: Method): boolean {
  return method !== "GET" && access !== "node" && access !== "service";
}

/** A node's path names the node itself, which the certificate decides about. */
function takesForeignIds(access: Access): boolean {
  return access !== "node";
}
