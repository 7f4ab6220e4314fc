// Dispatching steps: the routes of the gateway's internal listener, called by workers with the dispatch token in the header
// `x-gateway-token`. Their field names and upper-case codes are those that existing callers know.

import { z } from "zod";
import { AnyText, Id, ReportedText } from "../fields.ts";
import { ExecutionKind, RequestId } from "./frames.ts";

export const DISPATCH_TOKEN_HEADER = "x-gateway-token";

export const dispatchPaths = {
  dispatch: "/internal/v1/dispatch",
  dispatchAsync: "/internal/v1/dispatch-async",
  /** Followed by the request id. */
  results: "/internal/v1/results",
} as const;

export const MOST_DISPATCH_BYTES = 1024 * 1024;
export const executionTimeout = { usual: 60_000, least: 1_000, most: 600_000 } as const;

/** Of a named secret of the organization. */
export const SecretName = AnyText.regex(
  /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/,
  "1 to 64 letters, digits, dots, hyphens and underscores, starting with a letter",
).describe("1 to 64 letters, digits, dots, hyphens and underscores, starting with a letter. Case matters.");

/** Part of a request id, of which colons separate the parts. */
const IdPart = AnyText.min(1).max(120);

export const DispatchBody = z
  .object({
    organizationId: Id,
    requestedByUserId: Id,
    runId: IdPart,
    workflowId: IdPart,
    nodeId: IdPart,
    nodeType: AnyText.min(1).max(120),
    attemptCount: z.int().min(1).max(1000),
    kind: ExecutionKind,
    payload: z.record(AnyText, z.unknown()),
    /** At most one of these three. A secret of the organization is opened by the api, for requestedByUserId. */
    secret: AnyText.min(1).max(65_536).optional(),
    secretName: SecretName.optional(),
    secretId: Id.optional(),
    /** A group is the tag `group:<name>`. */
    selectorTag: AnyText.min(1).max(128).optional(),
    selectorAgentId: Id.optional(),
    timeoutMs: z.int().min(executionTimeout.least).max(executionTimeout.most).optional(),
    /** How long the request may wait for an agent that can take it. */
    waitMs: z.int().min(0).max(executionTimeout.most).optional(),
  })
  .refine(
    ({ secret, secretName, secretId }) =>
      [secret, secretName, secretId].filter((one) => one !== undefined).length < 2,
    { path: ["secretName"], error: "use only one of secret, secretName and secretId" },
  );
export type DispatchBody = z.infer<typeof DispatchBody>;

export const requestIdOf = (body: Pick<DispatchBody, "runId" | "nodeId" | "attemptCount">): string =>
  `${body.runId}:${body.nodeId}:${body.attemptCount}`;

/** The answer to a dispatch and of a result; failures are answered with 200 too. */
export const ExecutionResult = z.object({
  status: z.enum(["succeeded", "failed"]),
  output: z.unknown().optional(),
  error: ReportedText.optional(),
});
export type ExecutionResult = z.infer<typeof ExecutionResult>;

export const DispatchedAsync = z.object({
  requestId: RequestId,
  dispatched: z.boolean(),
  /** The request is known already: it runs, or it has ended. */
  cached: z.boolean().optional(),
});
export type DispatchedAsync = z.infer<typeof DispatchedAsync>;
