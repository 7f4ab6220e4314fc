// The requests of the gateway to the api, on the api's internal listener (3004), and how an ingress gets its
// certificates there. Gateway and api both present a service certificate of Holdfast's CA. The first one is obtained with
// the service token that both are configured with, which never crosses the wire: each proves that it knows the token.

import { z } from "zod";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { AnyText, Id, Text, Time } from "../fields.ts";
import { correlationIdForm } from "../headers.ts";
import { readinessSteps } from "../terminal/frames.ts";
import { ExecutionNews, executionInternalEndpoints } from "./executions.ts";
import { LogsWanted, reportLogLines } from "./logs.ts";

const Mac = z.string().regex(/^[A-Za-z0-9_-]{43}$/, "an HMAC-SHA256, base64url");
const ingressName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const session = z.strictObject({ session_id: Id });
const CorrelationId = z.string().regex(correlationIdForm);

const ServiceIdentity = z.strictObject({
  /** Leaf and issuing CA, PEM: for both ends of TLS. */
  certificate: z.string(),
  not_after: Time,
  /** Roots, PEM. */
  trust_bundle: z.array(z.string()),
  /** Roots and issuing CAs, PEM: what may have signed a node's certificate. */
  authorities: z.array(z.string()),
});

export const enrollService = endpoint({
  name: "enrollService",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/services/enroll",
  summary: "A service certificate for whoever knows the service token",
  access: "public",
  body: z.strictObject({
    service: z.enum(["gateway"]),
    /** Random per process. */
    instance_id: Id,
    /** PEM. */
    csr: AnyText.max(8_192),
    /** Names and addresses that its own listener is reached by. */
    names: z.array(AnyText.max(253)).max(64),
    nonce: AnyText.min(16).max(64),
    sent_at: Time,
    /** Over the canonical JSON of all the above, with the service token as the key. */
    mac: Mac,
  }),
  answer: ServiceIdentity.extend({
    /** Over the nonce and the canonical JSON of the identity. */
    mac: Mac,
  }),
  errors: ["service_token_wrong", "csr_invalid", "ca_unavailable"],
});

/** What the ingress presents: to the api as a client, and to nodes as the listener that they dial. */
export const enrollIngress = endpoint({
  name: "enrollIngress",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/ingresses/enroll",
  summary: "Certificates of an ingress for whoever knows the ingress token",
  access: "public",
  body: z.strictObject({
    name: z.string().regex(ingressName, "lower-case letters, digits and dashes, 63 at most"),
    /** PEM: for the key that it presents to the api. */
    csr: AnyText.max(8_192),
    /** PEM: for the key that its own listener has. */
    listener_csr: AnyText.max(8_192),
    nonce: AnyText.min(16).max(64),
    sent_at: Time,
    /** Over the canonical JSON of all the above, with the ingress token as the key. */
    mac: Mac,
  }),
  answer: z.strictObject({
    /** Leaf and issuing CA, PEM. */
    certificate: z.string(),
    listener_certificate: z.string(),
    /** The address that nodes reach it by; its listener's certificate is issued for it. */
    names: z.array(z.string()),
    /** Of both. */
    not_after: Time,
    /** Roots, PEM: what the api's own certificate leads to. */
    trust_bundle: z.array(z.string()),
    /** Over the nonce and the canonical JSON of the rest. */
    mac: Mac,
  }),
  errors: ["service_token_wrong", "csr_invalid", "ca_unavailable"],
});

/** Its origin stands in the policy of every page: nothing in it may mean anything there. */
const terminalAddress = /^wss?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?\/[^\s?#]*$/i;

export const announceGateway = endpoint({
  name: "announceGateway",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/gateways/announce",
  summary: "Tell where browsers and nodes reach this gateway; again every few seconds",
  access: "service",
  body: z.strictObject({
    instance_id: Id,
    terminal_url: z
      .string()
      .max(2_000)
      .regex(terminalAddress, "for browsers: a ws:// or wss:// address with its path")
      .refine((text) => URL.canParse(text), "not an address"),
    node_url: z
      .string()
      .max(2_000)
      .regex(/^https:\/\/[^\s/?#]+$/, "for nodes: an https:// address without a path")
      .refine((text) => URL.canParse(text), "not an address"),
    sessions: z.int().nonnegative().max(2_147_483_647),
    execution_url: z
      .string()
      .max(2_000)
      .regex(terminalAddress, "for agents: a ws:// or wss:// address with its path")
      .optional(),
    /** It stops: from now on nobody is sent to it. */
    leaving: z.boolean().optional(),
  }),
  answer: z.strictObject({
    /** Origins of pages that may open terminals. */
    origins: z.array(z.string()),
    ticket_keys: z.string().describe("48 bytes, base64: for TLS sessions that nodes resume at any gateway."),
    ingress_mark: z.string().nullable().describe("What ingress certificates that count carry; null: none do."),
  }),
});

export const reportForgedCertificates = endpoint({
  name: "reportForgedCertificates",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/gateways/forged-certificates",
  summary: "Tell of requests that carried a node's certificate in a header without being an ingress",
  access: "service",
  body: z.strictObject({
    gateway_id: Id,
    listener: z.enum(["gateway", "node_terminal"]),
    /** Where the last one came from. */
    address: Text.max(64),
    correlation_id: CorrelationId,
    /** Since the last report. */
    count: z.int().positive(),
  }),
});

/** What a token was good for. */
export const TerminalGrant = z.strictObject({
  session_id: Id,
  org_id: Id,
  /** Null: it is the console of a VM. */
  allocation_id: Id.nullable(),
  node_id: Id,
  /** Of the person or token that made the request; for limits and for attaching. */
  user_key: z.string(),
  correlation_id: z.string(),
  /** `open`: the shell is still to be started. */
  purpose: z.enum(["open", "attach"]),
  offset: z.int().nonnegative().nullable(),
  asked_at: Time,
  deadline_seconds: z.number(),
  /** Terminals that other gateways have, of the same person and on the same node: they count towards the limits, too. */
  elsewhere: z.strictObject({ of_user: z.int().nonnegative(), on_node: z.int().nonnegative() }),
  limits: z.strictObject({
    idle_seconds: z.number(),
    detached_seconds: z.number(),
    longest_seconds: z.number(),
    per_user: z.int(),
    per_node: z.int(),
  }),
});
export type TerminalGrant = z.infer<typeof TerminalGrant>;

export const claimTerminalToken = endpoint({
  name: "claimTerminalToken",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminal-tokens/claim",
  summary: "Use a terminal token up",
  access: "service",
  body: z.strictObject({ token: AnyText.max(200), gateway_id: Id }),
  answer: TerminalGrant,
  /** Details: the true `reason`, and the `correlation_id` under which the audit trail has the refusal. */
  errors: ["terminal_token_refused"],
});

const TerminalTaskFailure = z.strictObject({ code: z.string(), message: z.string() });

export const openTerminal = endpoint({
  name: "openTerminal",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminals/{session_id}/open",
  summary: "Make the task by which the node opens the terminal",
  access: "service",
  params: session,
  body: z.strictObject({ cols: z.int().min(1).max(1000), rows: z.int().min(1).max(500), gateway_id: Id }),
  answer: z.discriminatedUnion("sent", [
    z.strictObject({ sent: z.literal(true), task_id: Id }),
    z.strictObject({ sent: z.literal(false), failure: TerminalTaskFailure }),
  ]),
  errors: ["terminal_moved"],
});

export const awaitTerminalTask = endpoint({
  name: "awaitTerminalTask",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminals/{session_id}/task",
  summary: "Wait until the task that opens the terminal has ended",
  description:
    "The end of the task says nothing about readiness, only why there is none: whether a terminal is ready is " +
    "seen at the gateway.",
  access: "service",
  params: session,
  body: z.strictObject({ task_id: Id, gateway_id: Id }),
  answer: z.strictObject({ failure: TerminalTaskFailure.nullable() }),
  errors: ["terminal_moved"],
});

export const takeTerminal = endpoint({
  name: "takeTerminal",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminals/{session_id}/gateway",
  summary: "Report that this gateway has the terminal now, because a client attached to it here",
  description: "From here on the api accepts events of the terminal from this gateway only.",
  access: "service",
  params: session,
  body: z.strictObject({ gateway_id: Id }),
});

const TerminalFailed = z.strictObject({
  type: z.literal("failed"),
  at: Time,
  code: Text.max(64),
  detail: Text.max(400).nullable(),
  /** As in the client's error frame: of the connection that failed. */
  correlation_id: CorrelationId,
  /** The shell may still be there. */
  ended: z.boolean(),
});

/** What happened at the gateway, in order; for the chain, the audit and the metrics. */
export const TerminalEvent = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("step"), step: z.enum(readinessSteps), at: Time }),
  z.strictObject({ type: z.literal("attached"), at: Time, user_key: AnyText }),
  z.strictObject({ type: z.literal("detached"), at: Time }),
  TerminalFailed,
  z.strictObject({
    type: z.literal("closed"),
    at: Time,
    /** `exit`, `detached`, or the code that was sent to the client. */
    reason: Text.max(64),
    detail: Text.max(400).nullable(),
    correlation_id: CorrelationId,
    exit: z.strictObject({ code: z.int().nullable(), signal: Text.max(32).nullable() }).nullable(),
    bytes_in: z.int().nonnegative(),
    bytes_out: z.int().nonnegative(),
  }),
]);
export type TerminalEvent = z.infer<typeof TerminalEvent>;

export const reportTerminalEvents = endpoint({
  name: "reportTerminalEvents",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminals/{session_id}/events",
  summary: "Tell what happened to a terminal",
  access: "service",
  params: session,
  body: z.strictObject({ events: z.array(TerminalEvent).min(1).max(32), gateway_id: Id }),
  errors: ["terminal_session_unknown", "terminal_moved"],
});

/** By the token alone: which terminal it was for is not known where the claim was not answered. */
export const reportUnclaimedToken = endpoint({
  name: "reportUnclaimedToken",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminal-tokens/unclaimed",
  summary: "Report a connection that failed because the claim of its token was not answered",
  access: "service",
  body: z.strictObject({
    token_hash: z.string().regex(/^[A-Za-z0-9_-]{43}$/, "a SHA-256, base64url"),
    failed: TerminalFailed,
    gateway_id: Id,
  }),
});

export const admitNodeStream = endpoint({
  name: "admitNodeStream",
  noun: "service_api",
  method: "POST",
  path: "/internal/v1/terminals/{session_id}/node-stream",
  summary: "Whether this node may bring the stream of this terminal now",
  description: "Also after a restart of the gateway, which then learns again what the terminal is.",
  access: "service",
  params: session,
  body: z.strictObject({
    node_id: Id,
    serial: AnyText.max(64),
    gateway_id: Id,
    /** The stream is connected already: it stays only while the terminal is at this gateway. */
    again: z.boolean().optional(),
  }),
  answer: z.strictObject({ grant: TerminalGrant }),
  errors: [
    "identity_revoked",
    "identity_retired",
    "certificate_replaced",
    "terminal_session_unknown",
    "terminal_moved",
  ],
});

/** One line of JSON each, for as long as the gateway listens. Whatever was missed is in no later one. */
export const ServiceNews = z.discriminatedUnion("type", [
  /** Sent at once and every few seconds: the line is alive. */
  z.strictObject({ type: z.literal("alive"), at: Time }),
  z.strictObject({ type: z.literal("node_revoked"), node_id: Id }),
  z.strictObject({ type: z.literal("close_terminal"), session_id: Id, code: z.string() }),
  ...ExecutionNews,
  LogsWanted,
]);
export type ServiceNews = z.infer<typeof ServiceNews>;

export const followServiceNews = endpoint({
  name: "followServiceNews",
  noun: "service_api",
  method: "GET",
  path: "/internal/v1/news",
  summary: "What a gateway must know at once; a stream of JSON lines",
  access: "service",
});

export const serviceEndpoints: readonly Endpoint[] = [
  enrollService,
  enrollIngress,
  announceGateway,
  reportForgedCertificates,
  claimTerminalToken,
  openTerminal,
  awaitTerminalTask,
  takeTerminal,
  reportUnclaimedToken,
  reportTerminalEvents,
  admitNodeStream,
  followServiceNews,
  reportLogLines,
  ...executionInternalEndpoints,
];
