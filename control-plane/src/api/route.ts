// Joins an endpoint of the contract with its handler. Everything that is the same for all
// endpoints happens here, once: input, caller, origin, organization, scope, transaction,
// idempotency and audit. A handler is left with its own noun.

import {
  type AnswerOf,
  type BodyOf,
  type Endpoint,
  type ParamsOf,
  type QueryOf,
  statusOf,
} from "@holdfast/contracts/endpoint";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import { REPLAYED_HEADER } from "@holdfast/contracts/headers";
import { noteOrganization } from "@holdfast/service/request-organization";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type AuditTarget, auditActor, recordAudit } from "../audit/record.ts";
import { isUnavailable, type Sql, type Tx, withOrg } from "../database/connect.ts";
import { createOnce } from "../mechanisms/idempotency.ts";
import { type Actor, holdsScope, isOperator, keyOf } from "../people/actor.ts";
import { type ActingOrg, actingOrg, authenticate, refuseForeignOrigin } from "./access.ts";
import type { ApiContext } from "./context.ts";
import { HiddenError } from "./hidden.ts";
import { idempotencyKey, readInput } from "./input.ts";

export type Call<E> = {
  params: ParamsOf<E>;
  query: QueryOf<E>;
  body: BodyOf<E>;
  correlationId: string;
  /** The client's address, as reported by trusted proxies. */
  address: string;
  /** The URL by which people reach this server, for links. */
  baseUrl: string;
  /** What the caller identified themselves by, for requests within this process in their name. Never stored or logged. */
  onBehalf(): Record<string, string>;
};

/** Sets what the audit event records: the target, and details that contain no secret. */
export type Touched = (target: AuditTarget, details?: Record<string, unknown>) => void;

/** Browser cookies, which only sign-in routes need. */
export type BrowserCall<E> = Call<E> & {
  setCookie(value: string): void;
  userAgent: string | undefined;
  /** Secret of the device cookie. */
  device: string | undefined;
  /** Of a header that was sent once. */
  header(name: string): string | undefined;
};

export type PublicCall<E> = BrowserCall<E> & { actor: Actor | undefined };
export type SignedInCall<E> = Call<E> & { actor: Actor };
/** Runs after the transaction has committed, and not if it fails: for notifying waiting requests. */
export type AfterCommit = (work: () => void) => void;

export type OperatorCall<E> = SignedInCall<E> & { tx: Tx; touched: Touched; afterCommit: AfterCommit };
export type OrgCall<E> = OperatorCall<E> & { org: ActingOrg };

type Handler<C, E> = (call: C) => Promise<AnswerOf<E>>;

/** For any caller, also without sign-in. The handler records its own audit event, because only it knows who acted. */
export function publicRoute<E extends Endpoint>(
  api: ApiContext,
  endpoint: E,
  handle: Handler<PublicCall<E>, E>,
): void {
  if (endpoint.access !== "public") throw new Error(`${endpoint.name} is not public`);
  register(api, endpoint, async (request, reply) => {
    const actor = await authenticate(api, request);
    refuseForeignOrigin(api, endpoint, request, actor);
    return handle({ ...browserCallOf<E>(api, endpoint, request, reply), actor });
  });
}

/** For any signed-in caller, in no particular organization. */
export function signedInRoute<E extends Endpoint>(
  api: ApiContext,
  endpoint: E,
  handle: Handler<BrowserCall<E> & { actor: Actor }, E>,
): void {
  if (endpoint.access !== "signed-in") throw new Error(`${endpoint.name} is not for any signed-in caller`);
  register(api, endpoint, async (request, reply) => {
    const actor = await requireActor(api, endpoint, request);
    return handle({ ...browserCallOf<E>(api, endpoint, request, reply), actor });
  });
}

/** For the platform operator, in a transaction of the system role. */
export function operatorRoute<E extends Endpoint>(
  api: ApiContext,
  endpoint: E,
  handle: Handler<OperatorCall<E>, E>,
): void {
  if (endpoint.access !== "operator") throw new Error(`${endpoint.name} is not for the operator`);
  register(api, endpoint, async (request, reply) => {
    const actor = await requireActor(api, endpoint, request);
    const by = auditActor(actor, isOperator(actor) ? "operator" : "none");
    const call = callOf<E>(api, endpoint, request);
    if (!isOperator(actor)) {
      await recordRefusal(api, endpoint, { orgId: null, by, call, reason: "forbidden" });
      throw new ApiError("forbidden", {
        message: "Only the platform operator may do this.",
        nextStep: "Sign in as an operator, or run it on the server's own machine: `holdfast … --local`.",
        details: { needed: "platform operator" },
      });
    }
    return perform({ api, endpoint, request, reply, call, actor, by, orgId: null }, (tx, inTx) =>
      handle({ ...call, actor, tx, ...inTx }),
    );
  });
}

/** Runs before the transaction, for permitted callers: for waiting, which must not keep a transaction open. */
export type WaitCall<E> = SignedInCall<E> & {
  org: ActingOrg;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
};

export type OrgRouteOptions<E, Waited = void> = {
  /** What it returns, the handler has as `waited`. */
  waitFirst?: (call: WaitCall<E>) => Promise<Waited>;
  /** The response is put together from several queries, and must not contradict itself. */
  oneMoment?: boolean;
};

/** For members, tokens and operators acting in one organization, in a transaction confined to it. */
export function orgRoute<E extends Endpoint, Waited = void>(
  api: ApiContext,
  endpoint: E,
  handle: Handler<OrgCall<E> & { waited: Waited }, E>,
  options: OrgRouteOptions<E, Waited> = {},
): void {
  const { access } = endpoint;
  if (typeof access !== "object") throw new Error(`${endpoint.name} belongs to no organization`);
  register(api, endpoint, async (request, reply) => {
    const actor = await requireActor(api, endpoint, request);
    const call = callOf<E>(api, endpoint, request);
    const org = await actingOrg(api, actor, request, (call.params as { org_id?: string }).org_id);
    const by = auditActor(actor, org.role);
    if (!holdsScope(actor, org.role, access.scope)) {
      await recordRefusal(api, endpoint, { orgId: org.id, by, call, reason: "forbidden" });
      throw new ApiError("forbidden", { details: { needed: access.scope, role: org.role } });
    }
    noteOrganization(request, org.id);
    const waited = (await options.waitFirst?.({ ...call, actor, org, signal: goneSignal(reply) })) as Waited;
    const { oneMoment } = options;
    return perform({ api, endpoint, request, reply, call, actor, by, orgId: org.id, oneMoment }, (tx, inTx) =>
      handle({ ...call, actor, org, tx, ...inTx, waited }),
    );
  });
}

function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once("close", () => controller.abort());
  return controller.signal;
}

type Performance<E> = {
  api: ApiContext;
  endpoint: E & Endpoint;
  request: FastifyRequest;
  reply: FastifyReply;
  call: Call<E>;
  actor: Actor;
  by: ReturnType<typeof auditActor>;
  orgId: string | null;
  oneMoment?: boolean | undefined;
};

/** Runs handler, idempotency and audit in one transaction: all of it is committed, or nothing. */
async function perform<E>(
  { api, endpoint, request, reply, call, actor, by, orgId, oneMoment = false }: Performance<E>,
  handle: (tx: Tx, inTx: { touched: Touched; afterCommit: AfterCommit }) => Promise<AnswerOf<E>>,
): Promise<AnswerOf<E>> {
  const whenCommitted: (() => void)[] = [];
  const afterCommit: AfterCommit = (work) => void whenCommitted.push(work);
  const audited = async (tx: Tx) => {
    let seen: { target: AuditTarget; details?: Record<string, unknown> } | undefined;
    const touched: Touched = (target, details) => {
      seen = { target, details };
    };
    const answer = await handle(tx, { touched, afterCommit });
    if (endpoint.action) {
      if (!seen) throw new Error(`${endpoint.name} did not say what it touched`);
      const { correlationId } = call;
      await recordAudit(tx, api.log, {
        orgId,
        by,
        action: endpoint.action,
        ...seen,
        result: "allowed",
        correlationId,
      });
    }
    return answer;
  };
  const key = endpoint.creates ? idempotencyKey(request) : undefined;
  const work = async (tx: Tx) => {
    if (key === undefined) return audited(tx);
    const keyed = { orgId, actor: keyOf(actor), key, endpoint: endpoint.name, input: call };
    const { answer, replayed } = await createOnce(tx, api.answers, keyed, () => audited(tx));
    if (replayed) reply.header(REPLAYED_HEADER, "true");
    return answer;
  };
  try {
    const answer = await (orgId === null
      ? inTransaction(api.system, work)
      : withOrg(api.app, orgId, work, { oneMoment }));
    for (const notice of whenCommitted) notice();
    return answer;
  } catch (error) {
    if (endpoint.action && !isUnavailable(error)) {
      await recordRefusal(api, endpoint, { orgId, by, call, reason: reasonOf(error) });
    }
    throw error;
  }
}

async function inTransaction<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T> {
  return sql.begin(work);
}

/** A refused or failed action is recorded too, outside the transaction that was rolled back. */
async function recordRefusal(
  api: ApiContext,
  endpoint: Endpoint,
  refused: { orgId: string | null; by: ReturnType<typeof auditActor>; call: Call<unknown>; reason: ErrorCode },
): Promise<void> {
  const action = endpoint.action ?? `${endpoint.noun}.read`;
  await recordAudit(api.system, api.log, {
    orgId: refused.orgId,
    by: refused.by,
    action,
    target: refusedTarget(action, refused.call),
    result: refused.reason === "forbidden" ? "denied" : "failed",
    reason: refused.reason,
    correlationId: refused.call.correlationId,
  });
}

function reasonOf(error: unknown): ErrorCode {
  if (error instanceof HiddenError) return "forbidden";
  return error instanceof ApiError ? error.code : "internal_error";
}

/** The target that the path names; for a create, its type and the requested name. */
function refusedTarget(action: string, { params, body }: Call<unknown>): AuditTarget {
  const noun = action.slice(0, action.indexOf("."));
  const name = nameTried(body);
  const [named] = Object.entries(params as Record<string, string>);
  if (!named) return { type: noun, id: null, name };
  const [parameter, id] = named;
  const type = typesByParameter[parameter] ?? parameter.replace(/_id$/, "");
  return { type, id, name };
}

const typesByParameter: Partial<Record<string, string>> = { org_id: "organization", user_id: "member" };

/** The requested name of what was to be created or invited. */
function nameTried(body: unknown): string | null {
  const { slug, email, name } = (body ?? {}) as Record<string, unknown>;
  const tried = slug ?? email ?? name;
  return typeof tried === "string" ? tried : null;
}

async function requireActor(api: ApiContext, endpoint: Endpoint, request: FastifyRequest): Promise<Actor> {
  const actor = await authenticate(api, request);
  if (!actor) throw new ApiError("unauthenticated");
  refuseForeignOrigin(api, endpoint, request, actor);
  return actor;
}

function callOf<E>(api: ApiContext, endpoint: Endpoint, request: FastifyRequest): Call<E> {
  const input = readInput(endpoint, request) as Pick<Call<E>, "params" | "query" | "body">;
  const baseUrl = api.publicUrl ?? `${request.protocol}://${request.host}`;
  const address = api.addressOf?.(request.raw) ?? request.ip;
  return { ...input, correlationId: request.id, address, baseUrl, onBehalf: () => identifying(request) };
}

function identifying({ headers }: FastifyRequest): Record<string, string> {
  const { authorization, cookie, origin, host } = headers;
  const given = Object.entries({ authorization, cookie, origin, host });
  return Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function browserCallOf<E>(
  api: ApiContext,
  endpoint: Endpoint,
  request: FastifyRequest,
  reply: FastifyReply,
): BrowserCall<E> {
  return {
    ...callOf<E>(api, endpoint, request),
    setCookie: (value) => void reply.header("set-cookie", value),
    userAgent: request.headers["user-agent"],
    device: api.cookies.device.read(request.headers.cookie),
    header: (name) => {
      const value = request.headers[name];
      return typeof value === "string" ? value : undefined;
    },
  };
}

function register(
  api: ApiContext,
  endpoint: Endpoint,
  handle: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
): void {
  const status = statusOf(endpoint);
  api.http.route({
    method: endpoint.method,
    url: endpoint.path.replace(/\{(\w+)\}/g, ":$1"),
    config: { upperCaseCodes: endpoint.upperCaseCodes ?? false },
    handler: async (request, reply) => {
      const answer = await handle(request, reply);
      reply.header("cache-control", "no-store").code(status);
      if (status === 204) return reply.send();
      return reply.type("application/json; charset=utf-8").send(JSON.stringify(answer));
    },
  });
}
